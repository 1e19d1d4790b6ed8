import { setImmediate as nextTurn } from 'node:timers/promises';
import { headerCall, logsCall, readLinkedHeader, readLogs } from '../chain/block.ts';
import { feeSpanCalls, readFeeSpan } from '../chain/fees.ts';
import type { RpcOutcome } from '../chain/rpc/wire.ts';
import { type Coverage, missingFrom, type Span } from '../lib/coverage.ts';
import { bytesToHex } from '../lib/hex.ts';
import { DatabaseFileError } from '../lib/sqlite-file.ts';
import { askCounted, type CollectorContext, createSizer, noteRefused } from './context.ts';
import { readLateLabels, readPendingCode } from './labels.ts';
import { alarm, dedupeLogs, findStale, misfit, prepareScan, prepareSpan, readBlocks } from './spans.ts';
import { type CoverageKind, HOUR, hourOf } from './store/facts.ts';

/** `step` resolves to the milliseconds until the next one. `window` is the span that it fills. */
export interface Backfill {
  step(): Promise<number>;
  window(kind: CoverageKind): Span | null;
}

/** A refusal may pass (a node behind). Where no node has fee history, it costs one request a minute. */
const FEES_AGAIN_MS = 60_000;
/** While blocks are missing, so that one request reads the code of many contracts. */
const CODE_EVERY_MS = 5000;
/** Two requests for fifty contracts make 6,000 looks an hour, above Arc's rate of new ones. */
const LOOK_EVERY_MS = 30_000;

/**
 * The background loop, newest blocks first. Each step does the first task that has work, mostly by one request:
 * 0. rolls up an hour past the retention; 1. measures, once, where the window begins;
 * 2. reads base fees, because `/v1/fees` needs nothing else; 3. reads the scanners' logs;
 * 4. reads new contracts' code: every few seconds while blocks are missing, else at once;
 * 5. looks again for labels that came late; 6. reads whole blocks.
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

/** A block that fails so often when it is read alone counts as pruned, with all older ones, until the next start. */
const GIVE_UP_AFTER = 8;
/** The head loop asks about once a second. */
const HEAD_ANSWERED_MS = 5000;

/** A failure halves a step's size, a success doubles it. A block that cannot be read alone is given up. */
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

  async function sized(
    kind: CoverageKind,
    wanted: Coverage,
    task: (size: number) => Promise<unknown>,
  ): Promise<number> {
    try {
      await task(sizers[kind].size);
    } catch (error) {
      // Read and not stored is not pruned.
      const wasRead = error instanceof DatabaseFileError;
      if (!signal.aborted && !wasRead && !sizers[kind].shrink()) giveUp(kind, wanted);
      throw error;
    }
    sizers[kind].grow();
    failuresAlone = 0;
    return 0;
  }

  /** While the head cannot be read either, the providers are at fault, not the block. */
  function giveUp(kind: CoverageKind, wanted: Coverage): void {
    const headAnswers = clock.nowMs() - (state.headCheckedMs ?? 0) < HEAD_ANSWERED_MS;
    failuresAlone = headAnswers ? failuresAlone + 1 : 0;
    if (failuresAlone < GIVE_UP_AFTER) return;
    failuresAlone = 0;
    giveUpBelow(kind, wanted.at(-1)?.to ?? 0);
  }

  return sized;
}

const DAY_SECONDS = 86_400;
const SWEEP_EVERY_MS = 60_000;

/** Task 0; true when more may be due. By the newest stored block's time: a wrong clock deletes nothing. */
function createRetention({ clock, limits, lookups, writes }: CollectorContext): () => boolean {
  let lookedMs = Number.NEGATIVE_INFINITY;
  return () => {
    if (clock.nowMs() - lookedMs < SWEEP_EVERY_MS) return false;
    const newest = lookups.newestAt();
    if (newest === null) return false;
    const hour = hourOf(newest);
    if (writes.rollUpHour(hour - limits.retentionDays * DAY_SECONDS)) return true;
    writes.dropHours(hour - limits.hoursDays * DAY_SECONDS);
    lookedMs = clock.nowMs();
    return false;
  };
}

/** Where the time between blocks is measured: 40 minutes on Arc, so that rounding to seconds does not matter. */
const SAMPLE_BLOCKS = 5000;
/** Block 0 may be much older, and holds no transactions. */
const FIRST_BLOCK = 1;
/** Where the sample spans no time: the shortest that timestamps can show. */
const UNKNOWN_BLOCK_SECONDS = 1;

interface BackfillWindow {
  /** Null until measured. */
  current(kind: CoverageKind): Span | null;
  /** Resolves to false while the head is unknown. */
  measured(): Promise<boolean>;
  /** Leaves out block `to` and older ones until the next start. */
  giveUp(kind: CoverageKind, to: number): void;
}

/** Task 1. The window moves with the head. One measurement is enough: it only decides where filling ends. */
function createWindow(context: CollectorContext): BackfillWindow {
  const { state, limits, log } = context;
  const floors: Record<CoverageKind, number> = { full: FIRST_BLOCK, fees: FIRST_BLOCK, logs: FIRST_BLOCK };
  let blockSeconds: number | null = null;
  let sampleBlocks = SAMPLE_BLOCKS;
  return {
    current(kind) {
      const { head, next } = state;
      if (blockSeconds === null || head === null || next === null) return null;
      const blocks = Math.ceil((limits.backfillHours * HOUR) / blockSeconds);
      return { from: Math.max(floors[kind], head.number - blocks + 1), to: next - 1 };
    },
    async measured() {
      const { head, next } = state;
      if (blockSeconds !== null) return true;
      if (head === null || next === null) return false;
      const block = Math.max(FIRST_BLOCK, head.number - sampleBlocks);
      // Where a block this old is pruned, a younger one is next.
      sampleBlocks = Math.ceil(sampleBlocks / 2);
      const read = ([outcome]: readonly RpcOutcome[]) => readLinkedHeader(outcome, block);
      const first = await askCounted(context, [headerCall(block)], read);
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

/** The history and the headers of both ends. */
const CALLS_PER_SPAN = 3;

/** Task 2, for the newest `blocks` missing ones, several spans in one request. False when one is refused. */
async function fillFees(context: CollectorContext, missing: Coverage, blocks: number): Promise<boolean> {
  const length = Math.min(context.limits.feeSpan, blocks);
  const spans = newestSpans(missing, length, Math.floor(blocks / length));
  const calls = spans.flatMap(({ from, to }) => feeSpanCalls(from, to));
  const read = await askCounted(context, calls, (outcomes) =>
    spans.map(({ from, to }, at) =>
      readFeeSpan(outcomes.slice(at * CALLS_PER_SPAN, (at + 1) * CALLS_PER_SPAN), from, to),
    ),
  );
  for (const [at, span] of spans.entries()) {
    const rows = read[at];
    if (!rows) return false;
    context.writes.storeFees(span, rows);
    // A thousand rows take some milliseconds: buyers' requests are served between.
    await nextTurn();
  }
  return true;
}

function newestSpans(missing: Coverage, length: number, count: number): Span[] {
  const spans: Span[] = [];
  for (const gap of missing.toReversed()) {
    for (let to = gap.to; to >= gap.from && spans.length < count; to -= length) {
      spans.push({ from: Math.max(gap.from, to - length + 1), to });
    }
  }
  return spans;
}

/** Task 3: all filters in one request. Rejects when the node refuses the span as too large. */
async function fillLogs(context: CollectorContext, missing: Coverage, size: number): Promise<void> {
  const [span] = newestSpans(missing, size, 1);
  if (span === undefined) return;
  const { lookups, scanners, writes, state } = context;
  const calls = scanners.flatMap((scanner) => scanner.filters()).map((filter) => logsCall(filter, span.from, span.to));
  const known = {
    ...span,
    atOf: (block: number) => lookups.atOf(block) ?? state.head?.at ?? 0,
    hashOf: (block: number) => {
      const hash = lookups.hashOf(block);
      return hash && bytesToHex(hash);
    },
  };
  const read = (outcomes: readonly RpcOutcome[]) => outcomes.map((outcome) => readLogs(outcome, known));
  const found = calls.length === 0 ? [] : await askCounted(context, calls, read);
  if (found.some((logs) => logs === null)) throw new Error(`no provider gives the logs of ${size} blocks at once`);
  const logs = dedupeLogs(found.flatMap((part) => part ?? []));
  const scan = await prepareScan(context, { ...span, logs });
  writes.storeLogs(span, () => scan.rows());
  const rescanFrom = scan.rescanFrom();
  if (rescanFrom !== null) writes.forgetLogs({ from: rescanFrom, to: (state.next ?? span.to + 1) - 1 });
}

/**
 * Task 6. Stores blocks that fit their stored neighbours. Another neighbour is compared with the chain: where it is
 * right, the answer is refused, as of another chain; else it is an alarm, and the wrong blocks are deleted.
 */
async function fillBlocks(context: CollectorContext, missing: Coverage, size: number): Promise<void> {
  const [wanted] = newestSpans(missing, size, 1);
  if (wanted === undefined) return;
  const read = await readBlocks(context, { span: wanted, minHead: null });
  const span = await prepareSpan(context, read);
  const [first, last] = [span?.blocks[0]?.block.header, span?.blocks.at(-1)?.block.header];
  if (!span || !first || !last) return;
  const neighbour = misfit(context, first, last);
  if (neighbour === null) return span.store();
  const stale = await findStale(context, neighbour, neighbour < first.number ? -1 : 1);
  if (stale === null) return noteRefused(context, 'parent');
  alarm(context, stale);
  context.writes.drop(stale);
}
