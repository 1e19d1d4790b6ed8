import type { Clock } from '../../../lib/clock.ts';
import { orAborted } from '../../../upstream/client/deadline.ts';
import { createLimiter } from '../../../upstream/client/limiter.ts';
import type { Intent, Outcome, Settler } from '../../settler.ts';

/** How one attempt ended. */
export interface Attempt {
  readonly outcome: Outcome;
  /** False when the remote service gave no usable answer: none, a time-out, a server error, another network. A refusal is an answer. */
  readonly isHeard: boolean;
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
  /** Why this payer is not settled for now, or null. */
  refuses(payer: Uint8Array): string | null;
  clock: Clock;
  /** A question that waits longer than this for its answer stops the sale of more. */
  stallMs: number;
  log: { warn(detail: object, message: string): void };
}

/** Questions under way at once: a facilitator answers when a block has come, so many of them share one. */
const RUNNING = 128;
/** What comes beyond is found by reconciliation. */
const WAITING = 4096;
/** Of payments that were handed over before: they must not take the places of new ones. */
const RETRIES_RUNNING = 8;
/** New payments in a row without an answer after which sales stop. */
const UNHEARD_LIMIT = 3;
/** How long sales stop then, in milliseconds: ten blocks on Arc. */
const REST_MS = 5000;
/** The same payment is sent again after a while that doubles, up to this: the other side may settle it meanwhile. */
const FIRST_AGAIN_MS = 1000;
const LONGEST_AGAIN_MS = 300_000;

/**
 * The settler's side that all remote rails share. Runs at most 128 new and 8 repeated requests at once. Takes a payment again only after pauses
 * that double, from 1 s to 5 min. Stops sales for 5 s after three new payments without an answer in a row, and while one waits for longer than
 * `stallMs`. Only new payments of plain accounts count for both: a contract payer can hang the service that runs its code. Promises never reject.
 */
export function createRemoteQueue({ attempt, refuses, clock, stallMs, log }: RemoteQueueOptions): Settler {
  const fresh = createLimiter({ running: RUNNING, waiting: WAITING });
  const again = createLimiter({ running: RETRIES_RUNNING, waiting: WAITING });
  const stopping = new AbortController();
  const { signal } = stopping;
  // Questions of new payments that have no answer yet, by when they were asked.
  const asked = new Map<symbol, number>();
  const running = new Set<Promise<unknown>>();
  // Payments without an end, by how often they were tried, the longest untried first.
  const tried = new Map<string, { times: number; notBeforeMs: number }>();
  let unheard = 0;
  let restUntilMs = 0;

  function judge({ isHeard }: Attempt): void {
    unheard = isHeard ? 0 : unheard + 1;
    if (unheard >= UNHEARD_LIMIT) restUntilMs = clock.nowMs() + REST_MS;
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

  /** Asks in turn; whether the other side is late is told by how long this takes, not by what comes after the answer. */
  function contextOf({ broadcast, hasCode }: Intent): AttemptContext {
    const limiter = broadcast ? again : fresh;
    return {
      signal,
      inTurn: async (ask) => {
        const mark = Symbol('question');
        if (!broadcast && !hasCode) asked.set(mark, clock.nowMs());
        try {
          return await limiter.run(signal, () => orAborted(ask(), signal));
        } finally {
          asked.delete(mark);
        }
      },
    };
  }

  async function work(intent: Intent): Promise<Outcome> {
    if (signal.aborted || clock.nowMs() < (tried.get(intent.id)?.notBeforeMs ?? 0)) return { kind: 'unknown' };
    try {
      const ended = await attempt(intent, contextOf(intent));
      if (!intent.broadcast && !intent.hasCode) judge(ended);
      remember(intent.id, ended.outcome);
      return ended.outcome;
    } catch (error) {
      if (!signal.aborted) log.warn({ err: error, payment: intent.id }, 'a settlement could not be handed over');
      return { kind: 'unknown' };
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
      if (now < restUntilMs) return 'the settling service cannot be reached';
      const oldest = Math.min(now, ...asked.values());
      return now - oldest > stallMs ? 'the settling service does not answer' : null;
    },
    refuses,
    stop: async () => {
      stopping.abort();
      await Promise.all(running);
    },
  };
}
