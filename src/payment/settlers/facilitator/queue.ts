import type { Clock } from '../../../lib/clock.ts';
import { orAborted } from '../../../lib/or-aborted.ts';
import { createLimiter } from '../../../upstream/client/limiter.ts';
import type { Intent, Outcome, Settler } from '../../settler.ts';

/** How one attempt ended. */
export interface Attempt {
  readonly outcome: Outcome;
  /** False when the remote service gave no usable answer: no answer, a time-out, a server error, another network. A refusal is a usable answer. */
  readonly isHeard: boolean;
}

/** What an attempt is given. */
export interface AttemptContext {
  /** Aborts when the service stops. A request without an answer then stays unknown. */
  readonly signal: AbortSignal;
  /** Waits until fewer requests than the limit are running, then runs `ask`. */
  inTurn<T>(ask: () => Promise<T>): Promise<T>;
}

interface RemoteQueueOptions {
  /** One request to the remote service, and the read of the evidence after it. */
  attempt(intent: Intent, context: AttemptContext): Promise<Attempt>;
  /** Why this payer's payments are refused now, or null. */
  refuses(payer: Uint8Array): string | null;
  clock: Clock;
  /** Milliseconds without an answer to a request after which sales stop. */
  stallMs: number;
  log: { warn(detail: object, message: string): void };
}

/** New requests that run at once. A facilitator answers when a block is mined, so many requests share one block. */
const RUNNING = 128;
/** Requests that wait at the most. Reconciliation finds the payments beyond that number. */
const WAITING = 4096;
/** Repeated requests that run at once. They have their own limit, so that they do not take the places of new payments. */
const RETRIES_RUNNING = 8;
/** New payments in a row without an answer after which sales stop. */
const UNHEARD_LIMIT = 3;
/** How long sales then stop, in milliseconds: ten blocks on Arc. */
const REST_MS = 5000;
/** A payment is sent again after a pause that doubles, up to this many milliseconds. The remote service may settle it in the meantime. */
const FIRST_AGAIN_MS = 1000;
const LONGEST_AGAIN_MS = 300_000;

/**
 * The part of a settler that all remote rails share. Runs at most 128 new and 8 repeated requests at once. Takes a payment again only after pauses
 * that double, from 1 s to 5 min. Stops sales for 5 s after three new payments in a row without an answer, and while one request waits for longer
 * than `stallMs`. Only new payments of plain accounts count for both: a payer's contract can hang the service that runs its code. Promises never
 * reject.
 */
export function createRemoteQueue({ attempt, refuses, clock, stallMs, log }: RemoteQueueOptions): Settler {
  const fresh = createLimiter({ running: RUNNING, waiting: WAITING });
  const again = createLimiter({ running: RETRIES_RUNNING, waiting: WAITING });
  const stopping = new AbortController();
  const { signal } = stopping;
  // When each unanswered request of a new payment was sent, in Unix milliseconds.
  const asked = new Map<symbol, number>();
  const running = new Set<Promise<unknown>>();
  // Open payments with the number of their attempts. The payment whose last attempt is oldest comes first.
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
    // Drops payments that reconciliation has ended since.
    for (const [other, { notBeforeMs }] of tried) {
      if (notBeforeMs + 2 * LONGEST_AGAIN_MS > now) break;
      tried.delete(other);
    }
  }

  /** Runs requests within a limit. Only the time of the request itself counts for `stallMs`, not the work after the answer. */
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
      if (!signal.aborted) log.warn({ err: error, payment: intent.id }, 'a settlement attempt failed');
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
