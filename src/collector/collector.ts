import { setImmediate as nextTurn } from 'node:timers/promises';
import type { ChainClient } from '../chain/rpc/client.ts';
import { watchHeads } from '../chain/rpc/heads.ts';
import type { Clock } from '../lib/clock.ts';
import { readCollected } from '../store/chain/collected-status.ts';
import type { CollectorStatus, CollectorView } from '../store/chain/collector-status.ts';
import { createChainFacts } from '../store/chain/facts.ts';
import { keptUntilWritten } from '../store/chain/kept-until-written.ts';
import { createChainLookups } from '../store/chain/lookups.ts';
import { type ChainWrites, createChainWrites, type StoredCoverage } from '../store/chain/writes.ts';
import type { Sqlite } from '../store/sqlite/database.ts';
import { DatabaseFileError } from '../store/sqlite/file-error.ts';
import { createBackfill } from './backfill.ts';
import { createBudget, withinBudget } from './budget.ts';
import type { CollectorContext, CollectorLog, CollectorState, DescribeCode } from './context.ts';
import { createFollow } from './follow.ts';
import { createIdentityCheck } from './identity.ts';
import { type CollectorLimits, DEFAULT_LIMITS } from './limits.ts';
import type { LogScanner } from './log-scanner.ts';
import { createProgress, type Progress } from './progress.ts';
import { keyOf } from './scan.ts';

/** What the collector needs. */
export interface CollectorOptions {
  readonly chain: ChainClient;
  readonly db: Sqlite;
  readonly clock: Clock;
  readonly log: CollectorLog;
  readonly limits?: Partial<CollectorLimits>;
  readonly scanners?: readonly LogScanner[];
  readonly describeCode?: DescribeCode | null;
  /** Websocket endpoints whose `newHeads` announce blocks before the next poll. The collector also polls without them. */
  readonly wsUrls?: readonly string[];
}

/** The running collector. `start` returns at once. `stop` resolves when no task of it runs any more; then the database may be closed. */
export interface Collector extends CollectorView {
  start(): void;
  stop(): Promise<void>;
}

/** Back-off of a loop after consecutive failures. */
const BACK_OFF_MS = 1000;
const MAX_BACK_OFF_MS = 15_000;
/** Leaves one request for the head loop. */
const BACKGROUND_RESERVE = 1;

/**
 * Reads the chain into the database, in two loops that share one request budget: the head (follow.ts) and past blocks (backfill.ts).
 * Invariant: one transaction writes a span's rows and records the span as stored, so that a crash at any moment costs requests and nothing else.
 */
export function createCollector(options: CollectorOptions): Collector {
  const { clock, log } = options;
  const ended = new AbortController();
  const context = createContext(options, ended.signal);
  const { state, writes } = context;
  const checkIdentity = createIdentityCheck(context);
  const follow = createFollow(context);
  const backfill = createBackfill(context);
  const progress = createProgress(context, backfill);
  const storedStatus = createStoredStatus(context);
  let headPause = new AbortController();
  let loops: Promise<void>[] = [];
  let heads: { close(): void } | null = null;
  let identified = false;

  async function pause(loop: Loop, ms: number): Promise<void> {
    if (ms <= 0) return void (await nextTurn());
    if (loop === 'head') headPause = new AbortController();
    const signal = loop === 'head' ? AbortSignal.any([ended.signal, headPause.signal]) : ended.signal;
    await clock.sleep(ms, signal).catch(() => undefined);
  }

  const run = (loop: Loop, step: () => Promise<number>) =>
    runLoop(context, { loop, step, pause: (ms) => pause(loop, ms) });

  async function pollHead(): Promise<number> {
    if (!identified) await checkIdentity();
    identified = true;
    return follow();
  }

  async function fillPast(): Promise<number> {
    // Nothing may be stored before the identity check has passed.
    if (!identified) return context.limits.pollIntervalMs;
    const waitMs = await backfill.step();
    progress.note();
    return waitMs;
  }

  /** Notes the head. It ends the pause only in the second half of the poll interval: a poll for each head would use the whole budget. */
  function onHead(number: number): void {
    state.hint = number;
    if (clock.nowMs() - (state.headCheckedMs ?? 0) >= context.limits.pollIntervalMs / 2) headPause.abort();
  }

  return {
    status: () => readStatus(context, storedStatus(), progress),
    start() {
      loops = [run('head', pollHead), run('background', fillPast)];
      heads = watchHeads({ urls: options.wsUrls ?? [], log, onHead });
    },
    async stop() {
      heads?.close();
      ended.abort(new Error('the collector stops'));
      await Promise.all(loops);
      log.info({ commits: writes.version() }, 'the collector has stopped');
    },
  };
}

type Loop = 'head' | 'background';

interface LoopParts {
  readonly loop: Loop;
  /** Resolves to the milliseconds until the next step. */
  readonly step: () => Promise<number>;
  readonly pause: (ms: number) => Promise<void>;
}

/** Runs a step again and again. The first of consecutive failures is logged. Failures lengthen the pauses and never end the loop. */
async function runLoop({ log, signal, state }: CollectorContext, { loop, step, pause }: LoopParts): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    let waitMs: number;
    try {
      waitMs = await step();
      if (failures > 0) log.info({ loop, failures }, 'the collector reads again');
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      failures += 1;
      state.failures += 1;
      const what = error instanceof DatabaseFileError ? 'store what it has read' : 'read';
      if (failures === 1) log.warn({ loop, err: error }, `the collector could not ${what}; it tries again`);
      waitMs = Math.min(BACK_OFF_MS * 2 ** (failures - 1), MAX_BACK_OFF_MS);
    }
    await pause(waitMs);
  }
}

function createContext(options: CollectorOptions, signal: AbortSignal): CollectorContext {
  const { db, clock, log, chain, scanners = [], describeCode = null } = options;
  const given = { ...DEFAULT_LIMITS, ...options.limits };
  // The backfill must end inside the retention, or its blocks would be rolled up at once.
  const limits = { ...given, backfillHours: Math.min(given.backfillHours, given.retentionDays * 24 - 1) };
  const facts = createChainFacts(db);
  const writes = createChainWrites(db);
  const budget = createBudget(limits.requestsPerSecond, clock);
  const state = createState(facts.head(), writes);
  const count = () => {
    state.requests += 1;
  };
  const key = keyOf(scanners);
  if (facts.get('logsKey') !== key) {
    writes.forgetLogs({ from: 0, to: Number.MAX_SAFE_INTEGER });
    facts.set('logsKey', key);
  }
  return {
    ...{ limits, clock, log, writes, facts, scanners, describeCode, signal, state },
    lookups: createChainLookups(db),
    headChain: withinBudget(chain, budget, 0, signal, count),
    fillChain: withinBudget(chain, budget, BACKGROUND_RESERVE, signal, count),
  };
}

function createState(
  head: { number: number; hash: `0x${string}`; at: number; advancedMs: number } | null,
  writes: ChainWrites,
): CollectorState {
  const top = writes.coverage().full.at(-1);
  return {
    head: head && { number: head.number, hash: head.hash, at: head.at },
    headAdvancedMs: head?.advancedMs ?? null,
    headCheckedMs: null,
    hint: null,
    next: top === undefined ? null : top.to + 1,
    hasBlockReceipts: true,
    codeIsPending: true,
    ...{ requests: 0, failures: 0, reorgs: 0, replacedBlocks: 0 },
    refused: new Map(),
  };
}

/** The part of the status that is read from the database. */
interface StoredStatus {
  readonly coverage: StoredCoverage;
  readonly position: ReturnType<typeof readCollected>;
}

/** Every answer from collected data states the status, so its stored part is read once between two writes. */
function createStoredStatus(context: CollectorContext): () => StoredStatus {
  const { writes } = context;
  return keptUntilWritten(writes.version, () => {
    const coverage = writes.coverage();
    return { coverage, position: readCollected(context, coverage.full) };
  });
}

function readStatus(
  { state, writes }: CollectorContext,
  { coverage, position }: StoredStatus,
  progress: Progress,
): CollectorStatus {
  return {
    ...position,
    head: state.head,
    headAdvancedMs: state.headAdvancedMs,
    headCheckedMs: state.headCheckedMs,
    backfill: progress.read(coverage),
    version: writes.version(),
    fault: writes.fault(),
    counters: {
      requests: state.requests,
      refused: Object.fromEntries(state.refused),
      reorgs: state.reorgs,
      replacedBlocks: state.replacedBlocks,
      failures: state.failures,
    },
  };
}
