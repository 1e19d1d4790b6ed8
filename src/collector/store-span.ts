import type { ChainClient } from '../chain/rpc/client.ts';
import type { BlocksRead, CollectedBlock } from './blocks.ts';
import type { CollectorContext } from './context.ts';
import { toBlockRow, toCosts, toDeployRows } from './rows.ts';
import { type PreparedScan, prepareScan } from './scan.ts';

/** A span ready to be stored; the caller decides at that moment whether it still fits. */
export interface PreparedSpan {
  readonly blocks: readonly CollectedBlock[];
  /** One transaction: blocks, deploys, and what the scanners make of the logs. */
  store(replaceFrom?: number): void;
}

/** Lets the scanners prepare for the logs of what was read; null when nothing was read. */
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
        scan: scan && (() => scan.rows()),
        ...(replaceFrom !== undefined && { replaceFrom }),
      });
      if (deploys.length > 0) context.state.codeIsPending = true;
      // What was read here came with every log of its first topics: only blocks above may lack something.
      forgetAbove(context, scan, span.to);
    },
  };
}

/** Blocks that were scanned without what has just been found are scanned again. */
export function forgetAbove({ writes, state }: CollectorContext, scan: PreparedScan | null, above: number): void {
  const rescanFrom = scan?.rescanFrom() ?? null;
  const to = (state.next ?? 0) - 1;
  if (rescanFrom === null || to <= above) return;
  writes.forgetLogs({ from: Math.max(rescanFrom, above + 1), to });
}
