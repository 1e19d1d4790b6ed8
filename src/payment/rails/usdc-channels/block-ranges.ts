import { RpcError } from '../../../chain/rpc/wire.ts';

/**
 * Reads the blocks that are new since the last call, oldest first and none left out. The first call reads the block `head` alone. A range has `most`
 * blocks at the most; one that the node refuses is halved. When a range fails, the call rejects. The
 * next call does not read the earlier ranges again. It goes on at the failed one, with half of its blocks.
 */
export function createBlockRanges(read: (from: number, to: number) => Promise<void>, most: number) {
  let next: number | null = null;
  let size = most;

  return async (head: number): Promise<void> => {
    next ??= head;
    while (next <= head) {
      const to = Math.min(head, next + size - 1);
      const blocks = to - next + 1;
      try {
        await read(next, to);
        next = to + 1;
        size = Math.min(most, size * 2);
      } catch (error) {
        // Half of what was asked for, which may be less than the size.
        size = Math.max(1, Math.floor(blocks / 2));
        if (!(error instanceof RpcError) || blocks === 1) throw error;
      }
    }
  };
}
