import { type Coverage, missingFrom, type Span } from '../lib/coverage.ts';
import type { CoverageKind } from '../store/chain/facts.ts';
import { readBlocks } from './blocks.ts';
import { readPendingCode } from './code.ts';
import { type CollectorContext, noteRefused } from './context.ts';
import { fillFees, newestSpans } from './fees.ts';
import { fillLogs } from './logs.ts';
import { createRetention } from './retention.ts';
import { alarm, findStale, misfit } from './seams.ts';
import { createSizer } from './sizer.ts';
import { prepareSpan } from './store-span.ts';
import { createWindow } from './window.ts';

/** New contracts wait so long for their code, so that one request serves many. */
const CODE_EVERY_MS = 5000;
/** A block that could not be read so often, alone, is taken for pruned: nothing older is asked for until the next start. */
const GIVE_UP_AFTER = 8;
/** The head lane asks every second or so. */
const HEAD_ANSWERED_MS = 5000;

/** One step of the background; resolves to the milliseconds until the next. `window` is what it fills, for the progress. */
export interface Backfill {
  step(): Promise<number>;
  window(kind: CoverageKind): Span | null;
}

/**
 * The background lane, newest first. Each step does the first of these that has something to do, with one request or so:
 * 0. an hour past the retention is rolled up;
 * 1. where the window begins, once: by the time between blocks;
 * 2. base fees of the window, by fee history: with them `/v1/fees` is useful, so they come before everything;
 * 3. logs of the window, by eth_getLogs, when there are scanners;
 * 4. code of new contracts, every few seconds;
 * 5. whole blocks;
 * 6. nothing: wait for a beat.
 */
export function createBackfill(context: CollectorContext): Backfill {
  const { clock, limits, state, writes, scanners } = context;
  const window = createWindow(context);
  const sized = createSized(context, window.giveUp);
  const retain = createRetention(context);
  let hasFeeHistory = true;
  let codeReadMs = Number.NEGATIVE_INFINITY;

  function missing(kind: CoverageKind): Coverage {
    const span = window.current(kind);
    return span === null ? [] : missingFrom(writes.coverage()[kind], span);
  }

  return {
    window: window.current,
    async step() {
      if (retain()) return 0;
      if (!(await window.measured())) return limits.pollIntervalMs;
      const fees = hasFeeHistory ? missing('fees') : [];
      if (fees.length > 0) {
        return sized('fees', fees, async (size) => {
          hasFeeHistory = await fillFees(context, fees, size);
        });
      }
      const logs = scanners.length > 0 ? missing('logs') : [];
      if (logs.length > 0) return sized('logs', logs, (size) => fillLogs(context, logs, size));
      if (state.codeIsPending && clock.nowMs() - codeReadMs >= CODE_EVERY_MS) {
        codeReadMs = clock.nowMs();
        await readPendingCode(context);
        return 0;
      }
      const full = missing('full');
      if (full.length > 0) return sized('full', full, (size) => fillBlocks(context, full, size));
      return limits.pollIntervalMs;
    },
  };
}

/** Runs steps of variable size, and gives up on a block that cannot be read alone. */
function createSized(
  { clock, limits, state, signal }: CollectorContext,
  giveUpBelow: (kind: CoverageKind, block: number) => void,
) {
  const sizers = {
    fees: createSizer(limits.feeSpan * limits.feeSpansPerRequest, limits.feeSpan * 4),
    logs: createSizer(limits.logSpan),
    full: createSizer(limits.blocksPerRequest, 8),
  };
  let failuresAlone = 0;

  /** Runs a step of variable size: trouble halves it, success doubles it. */
  async function sized(
    kind: CoverageKind,
    wanted: Coverage,
    task: (size: number) => Promise<unknown>,
  ): Promise<number> {
    try {
      await task(sizers[kind].size);
    } catch (error) {
      if (!signal.aborted && !sizers[kind].shrink()) giveUp(kind, wanted);
      throw error;
    }
    sizers[kind].grow();
    failuresAlone = 0;
    return 0;
  }

  /** As long as the head does not answer either, it is the providers and not the block. */
  function giveUp(kind: CoverageKind, wanted: Coverage): void {
    const headAnswers = clock.nowMs() - (state.headCheckedMs ?? 0) < HEAD_ANSWERED_MS;
    failuresAlone = headAnswers ? failuresAlone + 1 : 0;
    if (failuresAlone < GIVE_UP_AFTER) return;
    failuresAlone = 0;
    giveUpBelow(kind, wanted.at(-1)?.to ?? 0);
  }

  return sized;
}

/**
 * Reads the newest missing blocks and stores them when they fit what is stored around them. When they do not:
 * 1. the stored neighbour is compared with the chain's, and those beyond it;
 * 2. it is right: the answer was of another chain, is refused, and the span comes again;
 * 3. it is wrong: an alarm; what is wrong is forgotten, and so is missing from now on.
 */
async function fillBlocks(context: CollectorContext, missing: Coverage, size: number): Promise<void> {
  const { fillChain, writes } = context;
  const [wanted] = newestSpans(missing, size, 1);
  if (wanted === undefined) return;
  const read = await readBlocks(context, fillChain, { span: wanted, minHead: null });
  const span = await prepareSpan(context, fillChain, read);
  const [first, last] = [span?.blocks[0]?.block.header, span?.blocks.at(-1)?.block.header];
  if (!span || !first || !last) return;
  const neighbour = misfit(context, first, last);
  if (neighbour === null) return span.store();
  const stale = await findStale(context, fillChain, neighbour, neighbour < first.number ? -1 : 1);
  if (stale === null) return noteRefused(context, 'parent');
  alarm(context, stale);
  writes.drop(stale);
}
