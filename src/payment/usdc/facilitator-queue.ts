import type { Clock } from '../../lib/clock.ts';
import { orAborted } from '../../upstream/deadline.ts';
import { createLimiter } from '../../upstream/limiter.ts';
import type { Intent, Outcome, Settler } from './settler.ts';

/** How one attempt ended; `clear` is false when the other side gave no answer that the evidence bears out. */
export interface Attempt {
  readonly outcome: Outcome;
  readonly clear: boolean;
}

/** What an attempt works under. */
export interface AttemptContext {
  /** Aborts when the service stops; what was asked by then stays unknown. */
  readonly signal: AbortSignal;
  /** Waits for a place among the questions that are asked at once. */
  inTurn<T>(ask: () => Promise<T>): Promise<T>;
}

interface RemoteQueueOptions {
  /** One question to the other side, and the look at the evidence after it. */
  attempt(intent: Intent, context: AttemptContext): Promise<Attempt>;
  clock: Clock;
  /** A job that waits longer than this stops the sale of more. */
  stallMs: number;
  log: { warn(detail: object, message: string): void };
}

/** Questions under way at once: a facilitator answers when a block has come, so many of them share one. */
const RUNNING = 128;
/** What comes beyond is found by reconciliation. */
const WAITING = 4096;
/** Unclear answers in a row after which nothing more is sold for a while. */
const UNCLEAR_LIMIT = 3;
const REST_MS = 5000;
/** The same payment is sent again after a while that doubles, up to this: whoever holds it may settle it meanwhile. */
const FIRST_AGAIN_MS = 1000;
const LONGEST_AGAIN_MS = 300_000;

/**
 * The settler's side that all remote rails share: so many at once, each payment with growing pauses between its attempts, and no more
 * sales while the other side gives no clear answers. Promises never reject.
 */
export function createRemoteQueue({ attempt, clock, stallMs, log }: RemoteQueueOptions): Settler {
  const limiter = createLimiter({ running: RUNNING, waiting: WAITING });
  const stopping = new AbortController();
  const { signal } = stopping;
  const inTurn = <T>(ask: () => Promise<T>) => limiter.run(signal, () => orAborted(ask(), signal));
  const waiting = new Map<symbol, number>();
  const running = new Set<Promise<unknown>>();
  // Payments without an end, by how often they were tried, the longest untried first.
  const tried = new Map<string, { times: number; notBeforeMs: number }>();
  let unclear = 0;
  let restUntilMs = 0;

  function judge({ clear }: Attempt): void {
    unclear = clear ? 0 : unclear + 1;
    if (unclear >= UNCLEAR_LIMIT) restUntilMs = clock.nowMs() + REST_MS;
  }

  function remember(id: string, outcome: Outcome): void {
    const times = (tried.get(id)?.times ?? 0) + 1;
    tried.delete(id);
    if (outcome.kind !== 'unknown') return;
    const now = clock.nowMs();
    tried.set(id, { times, notBeforeMs: now + Math.min(LONGEST_AGAIN_MS, FIRST_AGAIN_MS * 2 ** (times - 1)) });
    // Others learned their end without us.
    for (const [other, { notBeforeMs }] of tried) {
      if (notBeforeMs + 2 * LONGEST_AGAIN_MS > now) break;
      tried.delete(other);
    }
  }

  async function work(intent: Intent): Promise<Outcome> {
    if (signal.aborted || clock.nowMs() < (tried.get(intent.id)?.notBeforeMs ?? 0)) return { kind: 'unknown' };
    const mark = Symbol(intent.id);
    waiting.set(mark, clock.nowMs());
    try {
      const ended = await attempt(intent, { signal, inTurn });
      judge(ended);
      remember(intent.id, ended.outcome);
      return ended.outcome;
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error, payment: intent.id }, 'a settlement could not be handed over');
      return { kind: 'unknown' };
    } finally {
      waiting.delete(mark);
    }
  }

  function tracked(intent: Intent): Promise<Outcome> {
    const promise = work(intent);
    running.add(promise);
    void promise.finally(() => running.delete(promise));
    return promise;
  }

  return {
    settle: (intents) => intents.map(tracked),
    unavailable: () => {
      const now = clock.nowMs();
      if (signal.aborted) return 'the service is stopping';
      if (now < restUntilMs) return 'whoever settles gives no clear answers';
      const oldest = Math.min(now, ...waiting.values());
      return now - oldest > stallMs ? 'earlier settlements are late' : null;
    },
    stop: async () => {
      stopping.abort();
      await Promise.all(running);
    },
  };
}
