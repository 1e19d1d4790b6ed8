import { type LinkedHeader, readLinkedHeader } from '../chain/block.ts';
import { askChecked } from '../chain/rpc/checked.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import { type RpcCall, toQuantity } from '../chain/rpc/wire.ts';
import type { Span } from '../lib/coverage.ts';
import { hexToBytes } from '../lib/hex.ts';
import { type CollectorContext, noteRefused } from './context.ts';

/** Headers in one request of the search for the first block where stored and served chain differ: more than any reorg seen. */
const STEP = 32;

/** Whether the stored block `number` has this hash. True when the block is not stored whole, because then nothing contradicts the hash. */
export function isStoredAs({ lookups }: CollectorContext, number: number, hash: `0x${string}`): boolean {
  const stored = lookups.hashOf(number);
  return stored === null || stored.equals(hexToBytes(hash));
}

/** The stored neighbour whose hash does not fit blocks `first` to `last`; null when both fit or are not stored. */
export function misfit(context: CollectorContext, first: LinkedHeader, last: LinkedHeader): number | null {
  if (!isStoredAs(context, first.number - 1, first.parentHash)) return first.number - 1;
  const above = context.lookups.parentOf(last.number + 1);
  return above === null || above.equals(hexToBytes(last.hash)) ? null : last.number + 1;
}

/**
 * The stored blocks from `from` on, downwards or upwards, that differ from the chain's; null when `from` itself is right. It stops at a stored block
 * whose hash is the served one, or where nothing is stored. Blocks beyond a right one are right, because hashes chain them.
 */
export async function findStale(
  context: CollectorContext,
  chain: ChainClient,
  from: number,
  step: -1 | 1,
): Promise<Span | null> {
  let last: number | null = null;
  for (let at = from; ; at += step * STEP) {
    const numbers = Array.from({ length: STEP }, (_, offset) => at + step * offset).filter(
      (number) => context.lookups.hashOf(number) !== null,
    );
    const headers = await readHeaders(context, chain, numbers);
    for (let offset = 0; offset < STEP; offset += 1) {
      const number = at + step * offset;
      const header = headers.get(number);
      if (header === undefined || isStoredAs(context, number, header.hash)) {
        return last === null ? null : { from: Math.min(from, last), to: Math.max(from, last) };
      }
      last = number;
    }
  }
}

async function readHeaders(
  context: CollectorContext,
  chain: ChainClient,
  numbers: readonly number[],
): Promise<ReadonlyMap<number, LinkedHeader>> {
  if (numbers.length === 0) return new Map();
  const calls: RpcCall[] = numbers.map((number) => ({
    method: 'eth_getBlockByNumber',
    params: [toQuantity(number), false],
  }));
  return askChecked(
    chain,
    calls,
    (outcomes) => new Map(numbers.map((number, at) => [number, readLinkedHeader(outcomes[at], number)])),
    { onRefused: (reason) => noteRefused(context, reason) },
  );
}

/** Logs an alarm and counts it. Arc's finality is deterministic, so a replaced block is a fault of a node or of the chain. */
export function alarm({ log, state }: CollectorContext, stale: Span): void {
  const blocks = stale.to - stale.from + 1;
  state.reorgs += 1;
  state.replacedBlocks += blocks;
  log.error(
    { from: stale.from, to: stale.to, blocks },
    'ALARM: stored blocks are no longer those of the chain; they are read again',
  );
}
