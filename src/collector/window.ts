import { readLinkedHeader } from '../chain/full-block.ts';
import { askChecked } from '../chain/rpc/checked.ts';
import { toQuantity } from '../chain/rpc/wire.ts';
import type { Span } from '../lib/coverage.ts';
import type { CoverageKind } from '../store/chain/facts.ts';
import { type CollectorContext, noteRefused } from './context.ts';

/** Blocks between the two headers whose times give the time between blocks: on Arc some 40 minutes, so that whole-second times do not matter. */
const SAMPLE_BLOCKS = 5000;
/** Block 0 may be much older than the chain's run, and holds no transactions. */
const FIRST_BLOCK = 1;
/** What is assumed when the sample spans no time: the fastest that whole seconds show. */
const UNKNOWN_BLOCK_SECONDS = 1;
const HOUR_SECONDS = 3600;

/** The past blocks that are to be stored: the last hours below where the head lane reads. */
export interface BackfillWindow {
  /** Null until measured. */
  current(kind: CoverageKind): Span | null;
  /** Measures where the window begins, once; false while the head is not known. */
  measured(): Promise<boolean>;
  /** No longer asks for this kind of block `to` and older ones, until the next start. */
  giveUp(kind: CoverageKind, to: number): void;
}

/** The window moves with the head; the time between blocks is measured once a start, since it only decides where the filling ends. */
export function createWindow(context: CollectorContext): BackfillWindow {
  const { state, limits, fillChain, log } = context;
  const floors: Record<CoverageKind, number> = { full: FIRST_BLOCK, fees: FIRST_BLOCK, logs: FIRST_BLOCK };
  let blockSeconds: number | null = null;
  let sampleBlocks = SAMPLE_BLOCKS;
  return {
    current(kind) {
      const { head, next } = state;
      if (blockSeconds === null || head === null || next === null) return null;
      const blocks = Math.ceil((limits.backfillHours * HOUR_SECONDS) / blockSeconds);
      return { from: Math.max(floors[kind], head.number - blocks + 1), to: next - 1 };
    },
    async measured() {
      const { head, next } = state;
      if (blockSeconds !== null) return true;
      if (head === null || next === null) return false;
      const block = Math.max(FIRST_BLOCK, head.number - sampleBlocks);
      // Where so old a block is pruned, a younger one tells as well.
      sampleBlocks = Math.ceil(sampleBlocks / 2);
      const call = { method: 'eth_getBlockByNumber', params: [toQuantity(block), false] };
      const first = await askChecked(fillChain, [call], ([outcome]) => readLinkedHeader(outcome, block), {
        onRefused: (reason) => noteRefused(context, reason),
      });
      blockSeconds = head.at > first.at ? (head.at - first.at) / (head.number - first.number) : UNKNOWN_BLOCK_SECONDS;
      return true;
    },
    giveUp(kind, to) {
      log.warn(
        { kind, block: to },
        'no provider gives this block; it and older ones are given up until the next start',
      );
      floors[kind] = to + 1;
    },
  };
}
