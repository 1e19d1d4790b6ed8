import type { Clock } from '../../lib/clock.ts';
import { createFairStock, type FairStock } from '../../lib/limits/fair-stock.ts';
import { takeFairly } from '../../lib/limits/take-fairly.ts';

interface SharedReadsOptions<Q, A> {
  /** Answers all questions in order, an Error where one alone has no answer; rejects when none has. */
  ask(questions: readonly Q[]): Promise<readonly (A | Error)[]>;
  /** How long a question waits for others when nothing is under way. */
  gatherMs: number;
  /** How long those that came while others were being answered wait for more, once those have their answer. */
  pauseMs: number;
  /** How long a question waits for the answer of others. */
  longestWaitMs: number;
  /** Questions asked together at most. */
  most: number;
  clock: Clock;
  /** Resolves when a request may go out; at once by default. Questions that come meanwhile go with it. */
  ready?(): Promise<void>;
  /** What clients may have waiting, and for how long; any number for any time by default. */
  queue?: Queue;
}

interface Queue {
  /** Places in all, as things are now; a client gets another one only while it holds no more than are free. */
  places(): number;
  readonly waitMs: number;
  /** Thrown where there is no place, or the wait was too long. */
  refusal(): Error;
  /** Whether a request failed only because no more may go now: its questions then wait for another one. None did, by default. */
  isRefusal?(error: unknown): boolean;
  /** From this precedence on questions are preferred: the last quarter of the places is theirs, and they wait while no request may go. */
  readonly preferredFrom?: number;
}

/** Divides the places: the part that only preferred questions may take. */
const PREFERRED_PART = 4;

/** When payers are read together, in milliseconds, whatever tells of them. */
export const PAYER_READ_TIMES = {
  /** A moment for others to come: too short for a buyer to notice, long enough for a burst to share a request. */
  gatherMs: 4,
  /** Under load: at most a hundred requests a second, however fast the answers. */
  pauseMs: 10,
  /** A fifth of a block: a provider that hangs costs the next buyers no more. */
  longestWaitMs: 100,
} as const;

/**
 * Answers a question together with others of the same time; `signal` ends this caller's waiting alone. Where not all fit, those of a higher
 * `precedence` (0 by default) come before the others, and clients of the same one take turns.
 */
export type SharedRead<Q, A> = (question: Q, signal: AbortSignal, client?: string, precedence?: number) => Promise<A>;

interface Waiting<Q, A> {
  readonly question: Q;
  readonly client: string;
  readonly precedence: number;
  readonly sinceMs: number;
  hasLeft: boolean;
  resolve(answer: A): void;
  reject(error: unknown): void;
}

/**
 * Lets concurrent callers share requests: the more there are and the slower the answers, the more go into one.
 * 1. A question waits `gatherMs` for others. While requests are under way it waits until the last is answered and `pauseMs` more, at most
 *    `longestWaitMs`.
 * 2. A full request goes at once. The rest waits for the next; clients take turns.
 * 3. A request belongs to all its callers: it goes on when one leaves, and its failure is everyone's. With a queue, a request that failed only
 *    because no more may go now is made again: its questions have not had their turn, and wait on.
 * 4. A client without a place is refused at once. A question that waited `waitMs` is refused. If no request may go by then, new questions are
 *    refused too, until one goes. Preferred questions wait all the same, and a part of the places is theirs alone: those that have no
 *    chance must not take the place of one that has.
 */
export function createSharedReads<Q, A>(options: SharedReadsOptions<Q, A>): SharedRead<Q, A> {
  const { ask, gatherMs, pauseMs, longestWaitMs, most, clock, ready, queue } = options;
  const places = queue && createFairStock(queue.places);
  let waiting: Waiting<Q, A>[] = [];
  let underWay = 0;
  let isHeld = false;
  let isWatched = false;
  // A question has waited too long for a request that may not go yet.
  let isStuck = false;
  // Only the latest alarm sends.
  let alarms = 0;

  async function setAlarm(ms: number): Promise<void> {
    const alarm = ++alarms;
    await clock.sleep(ms);
    if (alarm === alarms) send();
  }

  function send(): void {
    alarms++;
    if (!ready) go();
    else if (!isHeld) void goWhenReady(ready);
  }

  async function goWhenReady(allowed: () => Promise<void>): Promise<void> {
    isHeld = true;
    const error = await allowed().then(
      () => null,
      (reason: unknown) => ({ reason }),
    );
    isHeld = false;
    if (error) fail(error.reason);
    else go();
  }

  function go(): void {
    isStuck = false;
    const batch = next(waiting, most);
    if (batch.length === 0) return;
    const taken = new Set(batch);
    waiting = waiting.filter((one) => !taken.has(one));
    void answer(batch);
    if (waiting.length >= most) send();
    else if (waiting.length > 0) void setAlarm(longestWaitMs);
  }

  function fail(error: unknown): void {
    isStuck = false;
    const all = waiting;
    waiting = [];
    for (const one of all) one.reject(error);
  }

  async function answer(batch: readonly Waiting<Q, A>[]): Promise<void> {
    underWay++;
    try {
      const answers = await ask(batch.map(({ question }) => question));
      batch.forEach((one, at) => void end(one, answers[at]));
    } catch (error) {
      if (queue?.isRefusal?.(error)) waitAgain(batch);
      else for (const one of batch) one.reject(error);
    }
    underWay--;
    if (underWay === 0 && waiting.length > 0) void setAlarm(pauseMs);
  }

  /** Puts questions back where they stood. */
  function waitAgain(batch: readonly Waiting<Q, A>[]): void {
    const staying = batch.filter(({ hasLeft }) => !hasLeft);
    waiting = [...staying, ...waiting].sort((one, other) => one.sinceMs - other.sinceMs);
    keepWatch();
    if (waiting.length > 0) void setAlarm(longestWaitMs);
  }

  function keepWatch(): void {
    if (!queue || isWatched) return;
    isWatched = true;
    void watch(queue);
  }

  /** Refuses what has waited for too long, as long as anything waits. */
  async function watch({ waitMs, refusal }: Queue): Promise<void> {
    for (let [oldest] = waiting; oldest; [oldest] = waiting) {
      await clock.sleep(Math.max(0, oldest.sinceMs + waitMs - clock.nowMs()));
      const isOver = ({ sinceMs }: Waiting<Q, A>) => clock.nowMs() - sinceMs >= waitMs;
      const over = waiting.filter(isOver);
      waiting = waiting.filter((one) => !over.includes(one));
      if (over.length > 0) isStuck = isHeld;
      for (const one of over) one.reject(refusal());
    }
    isWatched = false;
  }

  return (question, signal, client = '', precedence = 0) => {
    if (signal.aborted) return Promise.reject(signal.reason);
    if (queue && !takePlace(queue, places, { client, precedence, isStuck })) return Promise.reject(queue.refusal());
    const { promise, resolve, reject } = Promise.withResolvers<A>();
    const one = { question, client, precedence, sinceMs: clock.nowMs(), hasLeft: false, resolve, reject };
    const leave = () => {
      one.hasLeft = true;
      waiting = waiting.filter((other) => other !== one);
      reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    waiting.push(one);
    keepWatch();
    if (waiting.length === most) send();
    else if (waiting.length === 1) void setAlarm(underWay === 0 ? gatherMs : longestWaitMs);
    return promise.finally(() => {
      places?.give(client);
      signal.removeEventListener('abort', leave);
    });
  };
}

/** Takes a place for a question; false where there is none for it. */
function takePlace(
  { places, preferredFrom }: Queue,
  stock: FairStock | undefined,
  { client, precedence, isStuck }: { client: string; precedence: number; isStuck: boolean },
): boolean {
  const isPreferred = preferredFrom !== undefined && precedence >= preferredFrom;
  if (isStuck && !isPreferred) return false;
  const spared = preferredFrom === undefined || isPreferred ? 0 : Math.ceil(places() / PREFERRED_PART);
  return stock?.take(client, 1, spared) ?? true;
}

/** Who goes with the next request: those of the highest precedence first, and clients in turns. */
function next<Q, A>(waiting: readonly Waiting<Q, A>[], most: number): readonly Waiting<Q, A>[] {
  const byPrecedence = [...Map.groupBy(waiting, ({ precedence }) => precedence)].sort(([a], [b]) => b - a);
  const taken: Waiting<Q, A>[] = [];
  for (const [, equals] of byPrecedence) taken.push(...takeFairly(equals, most - taken.length, ({ client }) => client));
  return taken;
}

function end<Q, A>({ resolve, reject }: Waiting<Q, A>, answered: A | Error | undefined): void {
  if (answered === undefined || answered instanceof Error) reject(answered ?? new Error('a question without answer'));
  else resolve(answered);
}
