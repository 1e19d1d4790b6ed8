import { setImmediate as nextTurn } from 'node:timers/promises';
import { headerCall, type LinkedHeader, readLinkedHeader } from '../chain/block.ts';
import { askChecked, Contradiction, resultOrRefusal } from '../chain/rpc/checked.ts';
import type { ChainClient } from '../chain/rpc/client.ts';
import { watchHeads } from '../chain/rpc/heads.ts';
import type { RpcOutcome } from '../chain/rpc/wire.ts';
import type { Clock } from '../lib/clock.ts';
import type { Common } from '../lib/common.ts';
import { missingFrom, shareOf, sizeOf } from '../lib/coverage.ts';
import { DatabaseFileError, type Sqlite } from '../lib/sqlite-file.ts';
import { type Backfill, createBackfill } from './backfill.ts';
import {
  type CollectorContext,
  type CollectorLimits,
  type CollectorState,
  DEFAULT_LIMITS,
  type DescribeCode,
  noteRefused,
} from './context.ts';
import { createFollow } from './follow.ts';
import type { LogScanner } from './scanner.ts';
import { keyOf } from './spans.ts';
import {
  type CollectorStatus,
  type CollectorView,
  type CoverageKind,
  createChainFacts,
  createChainLookups,
  keptUntilWritten,
  readCollected,
  type StoredHead,
  type StoredIdentity,
} from './store/facts.ts';
import { type ChainWrites, createChainWrites, type StoredCoverage } from './store/writes.ts';

// Two loops share one request budget: the head (follow.ts) and past blocks (backfill.ts).

interface CollectorOptions {
  readonly limits?: Partial<CollectorLimits>;
  readonly scanners?: readonly LogScanner[];
  readonly describeCode?: DescribeCode | null;
  /** Their `newHeads` announce blocks before the next poll. */
  readonly wsUrls?: readonly string[];
}

/** After `stop` has resolved the database may be closed. */
export interface Collector extends CollectorView {
  start(): void;
  stop(): Promise<void>;
}

export function createCollector(common: Common, chain: ChainClient, db: Sqlite, options: CollectorOptions): Collector {
  const { clock, log } = common;
  const ended = new AbortController();
  const { head, fill } = createContexts(common, chain, db, options, ended.signal);
  const { state, writes, limits } = head;
  const checkIdentity = createIdentityCheck(head);
  const follow = createFollow(head);
  const backfill = createBackfill(fill);
  const progress = createProgress(fill, backfill);
  // Every answer from collected data states the status.
  const stored = keptUntilWritten(writes.version, () => readStored(head));
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

  const run = (loop: Loop, step: () => Promise<number>) => runLoop(head, loop, step, (ms) => pause(loop, ms));

  async function pollHead(): Promise<number> {
    if (!identified) await checkIdentity();
    identified = true;
    return follow();
  }

  async function fillPast(): Promise<number> {
    // Nothing may be stored before the identity check has passed.
    if (!identified) return limits.pollIntervalMs;
    const waitMs = await backfill.step();
    progress.note();
    return waitMs;
  }

  /** Only in the second half of the poll interval: a poll for each head would use the whole budget. */
  function onHead(number: number): void {
    state.hint = number;
    if (clock.nowMs() - (state.headCheckedMs ?? 0) >= limits.pollIntervalMs / 2) headPause.abort();
  }

  return {
    status: () => readStatus(head, stored(), progress),
    start() {
      loops = [run('head', pollHead), run('background', fillPast)];
      heads = watchHeads(log, options.wsUrls ?? [], onHead);
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

const BACK_OFF_MS = 1000;
const MAX_BACK_OFF_MS = 15_000;

/** The first of consecutive failures is logged. They lengthen pauses and end nothing. */
async function runLoop(
  { log, signal, state }: CollectorContext,
  loop: Loop,
  step: () => Promise<number>,
  pause: (ms: number) => Promise<void>,
): Promise<void> {
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

const BACKGROUND_RESERVE = 1;

/** What both loops share, with each loop's client. */
function createContexts(
  { clock, log }: Common,
  chain: ChainClient,
  db: Sqlite,
  { scanners = [], describeCode = null, ...options }: CollectorOptions,
  signal: AbortSignal,
): Readonly<Record<'head' | 'fill', CollectorContext>> {
  const given = { ...DEFAULT_LIMITS, ...options.limits };
  // The backfill must end inside the retention, or its blocks would be rolled up at once.
  const limits = { ...given, backfillHours: Math.min(given.backfillHours, given.retentionDays * 24 - 1) };
  const facts = createChainFacts(db);
  const writes = createChainWrites(db);
  const budget = createBudget(limits.requestsPerSecond, clock);
  const state = createState(facts.head(), writes);
  const onRequest = () => {
    state.requests += 1;
  };
  const key = keyOf(scanners);
  if (facts.get('logsKey') !== key) {
    writes.forgetLogs({ from: 0, to: Number.MAX_SAFE_INTEGER });
    facts.set('logsKey', key);
  }
  const lookups = createChainLookups(db);
  const shared = { limits, clock, log, writes, facts, scanners, describeCode, signal, state, lookups };
  const leaving = (reserve: number): CollectorContext => ({
    ...shared,
    chain: withinBudget(chain, budget, reserve, signal, onRequest),
  });
  return { head: leaving(0), fill: leaving(BACKGROUND_RESERVE) };
}

function createState(head: StoredHead | null, writes: ChainWrites): CollectorState {
  const top = writes.coverage().full.at(-1);
  return {
    head: head && { number: head.number, hash: head.hash, at: head.at },
    headAdvancedMs: head?.advancedMs ?? null,
    headCheckedMs: null,
    hint: null,
    next: top === undefined ? null : top.to + 1,
    hasBlockReceipts: true,
    codeIsPending: true,
    requests: 0,
    failures: 0,
    reorgs: 0,
    replacedBlocks: 0,
    refused: new Map(),
  };
}

interface Budget {
  /** Waits until the bucket holds one request and `reserve` more, and takes one. */
  take(reserve: number, signal: AbortSignal): Promise<void>;
  /** For a request that was not planned (a failover). Below zero, later callers wait. */
  overdraw(): void;
}

/** A poll and a background request at the same time. */
const BURST = 2;

/** A token bucket of HTTP requests. */
export function createBudget(perSecond: number, clock: Clock): Budget {
  let tokens = BURST;
  let filledMs = clock.nowMs();
  const fill = () => {
    const nowMs = clock.nowMs();
    tokens = Math.min(BURST, tokens + (Math.max(nowMs - filledMs, 0) * perSecond) / 1000);
    filledMs = nowMs;
  };
  return {
    async take(reserve, signal) {
      for (fill(); tokens < 1 + reserve; fill()) {
        await clock.sleep(Math.ceil(((1 + reserve - tokens) * 1000) / perSecond), signal);
      }
      tokens -= 1;
    },
    overdraw() {
      fill();
      tokens -= 1;
    },
  };
}

/** Batches (of at most 100 calls) wait for the budget. `reserve` requests are left to urgent ones. */
export function withinBudget(
  chain: ChainClient,
  budget: Budget,
  reserve: number,
  signal: AbortSignal,
  onRequest: () => void,
): ChainClient {
  const spend = () => {
    let taken = 1;
    return () => {
      onRequest();
      if (taken > 0) taken -= 1;
      else budget.overdraw();
    };
  };
  return {
    chainId: chain.chainId,
    publicUrl: chain.publicUrl,
    async request(method, params, options = {}) {
      await budget.take(reserve, signal);
      return chain.request(method, params, { signal, rank: 'collect', ...options, onRequest: spend() });
    },
    async batch(calls, options = {}) {
      await budget.take(reserve, signal);
      return chain.batch(calls, { signal, rank: 'collect', ...options, onRequest: spend() });
    },
    ready: chain.ready,
    requestsPerSecond: chain.requestsPerSecond,
    agreed: chain.agreed,
    each: () => Promise.reject(new Error('the collector asks one provider')),
    everywhere: () => Promise.reject(new Error('the collector only reads')),
  };
}

/** All providers must differ so often before the database is emptied: rolled-up hours cannot be read again. */
const ROUNDS = 3;

/**
 * Must pass before anything is stored. An empty database takes the providers' chain id and genesis. A provider of
 * another genesis is refused, and the next is asked. When all differ in all rounds (a test chain was restarted), or the
 * chain id was changed, the database is emptied.
 */
function createIdentityCheck(context: CollectorContext): () => Promise<void> {
  const { chain, facts, writes, log, state } = context;
  let rounds = 0;

  function read(outcome: RpcOutcome | undefined, stored: StoredIdentity | null): LinkedHeader | null {
    const result = resultOrRefusal(outcome);
    if (result === undefined) throw new Contradiction('missing', 'no answer about genesis');
    const genesis = result === null ? null : readLinkedHeader(outcome, 0);
    if (stored?.hash && genesis && genesis.hash !== stored.hash) {
      throw new Contradiction('genesis', 'another genesis than the stored chain has');
    }
    return genesis;
  }

  async function ask(stored: StoredIdentity | null): Promise<LinkedHeader | null> {
    let differs = false;
    const onRefused = (reason: Contradiction['reason']) => {
      differs ||= reason === 'genesis';
      noteRefused(context, reason);
    };
    try {
      return await askChecked(chain, [headerCall(0)], ([outcome]) => read(outcome, stored), onRefused);
    } catch (error) {
      if (differs) rounds += 1;
      throw error;
    }
  }

  function startAnew(): void {
    log.error(
      { chainId: chain.chainId },
      'the chain database is of another chain; the collector empties it and fills it again',
    );
    writes.reset();
    Object.assign(state, { head: null, headAdvancedMs: null, next: null });
  }

  return async () => {
    const known = facts.identity();
    const foreign = known !== null && (known.chainId !== chain.chainId || rounds >= ROUNDS);
    if (foreign) startAnew();
    const stored = foreign ? null : known;
    const genesis = await ask(stored);
    if (stored !== null && (stored.hash !== null || genesis === null)) return;
    facts.set('identity', JSON.stringify({ chainId: chain.chainId, hash: genesis?.hash ?? null }));
    if (genesis !== null) facts.set('genesis', JSON.stringify({ hash: genesis.hash, at: genesis.at }));
  };
}

/** Where the rate is measured, so that a slow request does not change the remaining time much. */
const RATE_OVER_MS = 60_000;
const LOG_EVERY_MS = 5000;

function createProgress(context: CollectorContext, backfill: Backfill) {
  const { clock, log, writes, scanners } = context;
  let samples: { readonly ms: number; readonly missing: number }[] = [];
  let loggedMs = clock.nowMs();
  let isLogged = false;

  function missingBlocks({ full }: StoredCoverage): number {
    const window = backfill.window('full');
    return window === null ? Number.NaN : sizeOf(missingFrom(full, window));
  }

  function filled(kind: CoverageKind, coverage: StoredCoverage): number {
    const window = backfill.window(kind);
    return window === null ? 0 : shareOf(coverage[kind], window, 1);
  }

  function read(coverage: StoredCoverage): CollectorStatus['backfill'] {
    const missing = missingBlocks(coverage);
    const first = samples[0];
    const seconds = first ? (clock.nowMs() - first.ms) / 1000 : 0;
    const rate = first && seconds > 0 ? Math.max(first.missing - missing, 0) / seconds : 0;
    const secondsLeft = missing === 0 ? 0 : rate > 0 ? missing / rate : null;
    return {
      share: filled('full', coverage),
      blocksPerSecond: missing > 0 ? Math.round(rate * 10) / 10 : 0,
      secondsLeft: secondsLeft === null ? null : Math.ceil(secondsLeft),
      feesShare: filled('fees', coverage),
      logsShare: scanners.length === 0 ? 1 : filled('logs', coverage),
    };
  }

  return {
    read,
    note(): void {
      const nowMs = clock.nowMs();
      const coverage = writes.coverage();
      const missing = missingBlocks(coverage);
      if (Number.isNaN(missing)) return;
      samples = [...samples.filter(({ ms }) => nowMs - ms <= RATE_OVER_MS), { ms: nowMs, missing }].slice(-600);
      if (missing === 0) {
        if (isLogged) log.info({}, 'the window of past blocks is complete');
        isLogged = false;
      } else if (nowMs - loggedMs >= LOG_EVERY_MS) {
        loggedMs = nowMs;
        isLogged = true;
        log.info({ ...read(coverage) }, 'filling the window of past blocks');
      }
    },
  };
}

function readStored(context: CollectorContext) {
  const coverage = context.writes.coverage();
  return { coverage, ...readCollected(context, coverage.full) };
}

function readStatus(
  { state, writes }: CollectorContext,
  { coverage, ...stored }: ReturnType<typeof readStored>,
  progress: ReturnType<typeof createProgress>,
): CollectorStatus {
  return {
    ...stored,
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
