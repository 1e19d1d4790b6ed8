import { setTimeout as delay } from 'node:timers/promises';
import type { Answer } from './ask.ts';

/** One presentation and what came of it. */
export interface Try {
  /** Since the epoch, in milliseconds. */
  readonly atMs: number;
  readonly ms: number;
  readonly status: number;
  readonly code: string;
}

/** One call of the honest buyer. */
export interface Call {
  readonly served: boolean;
  /** From the first try to the last answer. */
  readonly ms: number;
  readonly tries: readonly Try[];
}

/** What is bought once, with one payment after another until one is taken. */
export interface Purchase {
  /** Presents the payment at hand. */
  present(): Promise<Answer>;
  /** Makes another payment, because this one was refused. */
  renew(): void;
}

export const TRIES = 3;
/** For one answer. */
export const ANSWER_TIMEOUT_MS = 15_000;
const WAIT_MS = 1000;
const MOST_WAIT_MS = 2000;
/** A try that would have to wait for longer than this before it is made counts as refused. */
const GIVE_UP_MS = 60_000;
/** After these the same payment is presented again; 0 is no answer. */
const AGAIN = new Set([0, 409, 429, 502, 503]);

/**
 * Buys at an even pace, each call when its time has come, whether or not those before are answered. A 429 means the client and not the call: while
 * the last answer was one, calls go one after another, each after the time that Retry-After asked for.
 */
export function buyEvenly(calls: number, everyMs: number, purchase: () => Purchase): Promise<Call[]> {
  const present = createPacing();
  return Promise.all(
    Array.from({ length: calls }, async (_, index) => {
      await delay(index * everyMs);
      return buy(purchase(), present);
    }),
  );
}

/** Presents for all calls of one client. */
function createPacing() {
  let refusal: Answer | null = null;
  let restUntilMs = 0;
  let line: Promise<unknown> = Promise.resolve();

  async function ask(purchase: Purchase): Promise<Answer> {
    const answer = await purchase.present();
    refusal = answer.status === 429 ? answer : null;
    if (refusal) restUntilMs = Date.now() + (answer.retryAfterMs ?? WAIT_MS);
    return answer;
  }

  return (purchase: Purchase): Promise<Answer> => {
    if (!refusal) return ask(purchase);
    const sinceMs = Date.now();
    const turn = line.then(async () => {
      if (refusal && restUntilMs > sinceMs + GIVE_UP_MS) return refusal;
      if (refusal) await delay(Math.max(0, restUntilMs - Date.now()));
      return ask(purchase);
    });
    line = turn;
    return turn;
  };
}

async function buy(purchase: Purchase, present: (purchase: Purchase) => Promise<Answer>): Promise<Call> {
  const started = performance.now();
  const tries: Try[] = [];
  for (;;) {
    const atMs = Date.now();
    const { status, code, retryAfterMs, ms } = await present(purchase);
    tries.push({ atMs, ms, status, code });
    const mayTry = tries.length < TRIES && (status === 402 || AGAIN.has(status));
    if (!mayTry) return { served: status === 200, ms: performance.now() - started, tries };
    if (status === 402) purchase.renew();
    else if (status !== 429) await delay(Math.min(retryAfterMs ?? WAIT_MS, MOST_WAIT_MS));
  }
}
