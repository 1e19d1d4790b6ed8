import { readLinkedHeader } from '../chain/block.ts';
import { askChecked } from '../chain/rpc/checked.ts';
import { toQuantity } from '../chain/rpc/wire.ts';
import type { Span } from '../lib/coverage.ts';
import type { CoverageKind } from '../store/chain/facts.ts';
import { type CollectorContext, noteRefused } from './context.ts';

/** The time between blocks is measured over so many blocks. On Arc that is some 40 minutes, so that rounding to seconds does not matter. */
const SAMPLE_BLOCKS = 5000;
/** Block 0 is skipped: it may be much older than block 1, and holds no transactions. */
const FIRST_BLOCK = 1;
/** Assumed when the sample spans no time: the shortest time that timestamps in seconds can show. */
const UNKNOWN_BLOCK_SECONDS = 1;
const HOUR_SECONDS = 3600;

/** The past blocks to store: the last hours below the block at which the head loop reads. */
export interface BackfillWindow {
  /** Null until measured. */
  current(kind: CoverageKind): Span | null;
  /** Measures where the window begins, once. Resolves to false while the head is unknown. */
  measured(): Promise<boolean>;
  /** Removes block `to` and older ones from the window of this kind until the next start. */
  giveUp(kind: CoverageKind, to: number): void;
}

/** Creates the window, which moves with the head. The time between blocks is measured once, because it only decides where the filling ends. */
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
      // When a block this old is pruned, a younger one is used.
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
        'no provider gives this block; the collector skips it and older blocks until the next start',
      );
      floors[kind] = to + 1;
    },
  };
}
