import { type Coverage, missingFrom, type Span } from '../lib/coverage.ts';
import type { CoverageKind } from '../store/chain/facts.ts';
import { DatabaseFileError } from '../store/sqlite/file-error.ts';
import { readBlocks } from './blocks.ts';
import { readPendingCode } from './code.ts';
import { type CollectorContext, noteRefused } from './context.ts';
import { fillFees, newestSpans } from './fees.ts';
import { readLateLabels } from './late-labels.ts';
import { fillLogs } from './logs.ts';
import { createRetention } from './retention.ts';
import { alarm, findStale, misfit } from './seams.ts';
import { createSizer } from './sizer.ts';
import { prepareSpan } from './store-span.ts';
import { createWindow } from './window.ts';

/** A refusal may pass, as that of a node which is behind. While no node has fee history, asking costs one request a minute. */
const FEES_AGAIN_MS = 60_000;
/** How often the code of new contracts is read while blocks are missing, so that one request serves many contracts. */
const CODE_EVERY_MS = 5000;
/** How often contracts are looked at again. With two requests for fifty of them that is 6,000 an hour, above Arc's rate of new ones. */
const LOOK_EVERY_MS = 30_000;
/** After so many failures to read one block alone, the block counts as pruned. Neither it nor older blocks are asked for until the next start. */
const GIVE_UP_AFTER = 8;
/** The head loop asks about once a second. */
const HEAD_ANSWERED_MS = 5000;

/** One step of the background loop. `step` resolves to the milliseconds until the next step. `window` is the span that it fills. */
export interface Backfill {
  step(): Promise<number>;
  window(kind: CoverageKind): Span | null;
}

/**
 * The background loop, newest blocks first. Each step does the first of these tasks that has work, mostly with one request:
 * 0. rolls up an hour past the retention;
 * 1. measures where the window begins, once, by the time between blocks;
 * 2. reads the base fees of the window by fee history; they come first, because `/v1/fees` needs nothing else. A minute without them follows a refusal;
 * 3. reads the logs of the window by eth_getLogs, when there are scanners;
 * 4. reads the code of new contracts: every few seconds while blocks are missing, else at once, so that the newest have their label;
 * 5. looks again at contracts whose label may have come late, every half minute;
 * 6. reads whole blocks;
 * 7. waits for one poll interval.
 */
export function createBackfill(context: CollectorContext): Backfill {
  const { clock, limits, state, writes, scanners } = context;
  const window = createWindow(context);
  const sized = createSized(context, window.giveUp);
  const retain = createRetention(context);
  let feesFromMs = Number.NEGATIVE_INFINITY;
  let codeReadMs = Number.NEGATIVE_INFINITY;
  let lookedMs = Number.NEGATIVE_INFINITY;

  function missing(kind: CoverageKind): Coverage {
    const span = window.current(kind);
    return span === null ? [] : missingFrom(writes.coverage()[kind], span);
  }

  return {
    window: window.current,
    async step() {
      if (retain()) return 0;
      if (!(await window.measured())) return limits.pollIntervalMs;
      const fees = clock.nowMs() >= feesFromMs ? missing('fees') : [];
      if (fees.length > 0) {
        return sized('fees', fees, async (size) => {
          const isFilled = await fillFees(context, fees, size);
          if (!isFilled) feesFromMs = clock.nowMs() + FEES_AGAIN_MS;
        });
      }
      const logs = scanners.length > 0 ? missing('logs') : [];
      if (logs.length > 0) return sized('logs', logs, (size) => fillLogs(context, logs, size));
      const full = missing('full');
      if (state.codeIsPending && (full.length === 0 || clock.nowMs() - codeReadMs >= CODE_EVERY_MS)) {
        codeReadMs = clock.nowMs();
        await readPendingCode(context);
        return 0;
      }
      if (clock.nowMs() - lookedMs >= LOOK_EVERY_MS) {
        lookedMs = clock.nowMs();
        if (await readLateLabels(context)) return 0;
      }
      if (full.length > 0) return sized('full', full, (size) => fillBlocks(context, full, size));
      return limits.pollIntervalMs;
    },
  };
}

/** Runs steps of variable size, and gives up a block that cannot be read alone. */
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

  /** Runs a step of variable size. A failure halves the size, a success doubles it. */
  async function sized(
    kind: CoverageKind,
    wanted: Coverage,
    task: (size: number) => Promise<unknown>,
  ): Promise<number> {
    try {
      await task(sizers[kind].size);
    } catch (error) {
      // A block that was read and could not be stored is not pruned.
      const wasRead = error instanceof DatabaseFileError;
      if (!signal.aborted && !wasRead && !sizers[kind].shrink()) giveUp(kind, wanted);
      throw error;
    }
    sizers[kind].grow();
    failuresAlone = 0;
    return 0;
  }

  /** While the head cannot be read either, the failure is the providers' and not the block's, so nothing is given up. */
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
 * Reads the newest missing blocks and stores them when their hashes fit the stored neighbours. When they do not fit:
 * 1. the stored neighbour, and the blocks beyond it, are compared with the chain's;
 * 2. the neighbour is right: the answer was of another chain. It is refused, and the span is read again;
 * 3. the neighbour is wrong: an alarm. The wrong blocks are deleted, so they are missing from now on.
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
