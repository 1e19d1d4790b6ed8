import type { ChainClient } from '../chain/rpc/client.ts';
import type { BlocksRead, CollectedBlock } from './blocks.ts';
import type { CollectorContext } from './context.ts';
import { toAccountRows, toBlockRow, toCosts, toDeployRows } from './rows.ts';
import { type PreparedScan, prepareScan } from './scan.ts';

/** A span that is ready to be stored. The caller checks right before `store` that it still fits. */
export interface PreparedSpan {
  readonly blocks: readonly CollectedBlock[];
  /** Stores blocks, deploys and the scanners' rows in one transaction. */
  store(replaceFrom?: number): void;
}

/** Prepares the scanners for the logs of the blocks that were read; null when none was read. */
export async function prepareSpan(
  context: CollectorContext,
  chain: ChainClient,
  { blocks, logs }: BlocksRead,
): Promise<PreparedSpan | null> {
  const [first, last] = [blocks[0], blocks.at(-1)];
  if (first === undefined || last === undefined) return null;
  const span = { from: first.block.header.number, to: last.block.header.number };
  const scan = logs === null ? null : await prepareScan(context, chain, { ...span, logs });
  return {
    blocks,
    store(replaceFrom) {
      const deploys = blocks.flatMap(toDeployRows);
      context.writes.storeBlocks({
        blocks: blocks.map(toBlockRow),
        deploys,
        costs: blocks.flatMap(toCosts),
        accounts: blocks.flatMap(toAccountRows),
        scan: scan && (() => scan.rows()),
        ...(replaceFrom !== undefined && { replaceFrom }),
      });
      if (deploys.length > 0) context.state.codeIsPending = true;
      // This span came with every log of the scanners' first topics, so only blocks above it may lack rows.
      forgetAbove(context, scan, span.to);
    },
  };
}

/** Marks the blocks above `above` that were scanned without a new find, so that they are scanned again. */
export function forgetAbove({ writes, state }: CollectorContext, scan: PreparedScan | null, above: number): void {
  const rescanFrom = scan?.rescanFrom() ?? null;
  const to = (state.next ?? 0) - 1;
  if (rescanFrom === null || to <= above) return;
  writes.forgetLogs({ from: Math.max(rescanFrom, above + 1), to });
}
