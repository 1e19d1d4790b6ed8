import type { Clock } from '../clock.ts';
import { createFairStock, type FairStock, takeFairly } from './shares.ts';

// Concurrent callers share requests: the more callers, and the slower answers, the more questions a request has.
// 1. A question waits BATCH_WINDOW_MS; while requests run, PAUSE_MS beyond the last answer, at most LONGEST_WAIT_MS.
// 2. A request goes on when a caller leaves; its failure reaches all. One that failed only because no more may be sent
//    now is made again.
// 3. Without a place, or after `waitMs`, a question is refused. Some places are for preferred ones: a flood of others
//    cannot take those of payments that are likely to be valid.

interface Queue {
  /** Places now. A client gets another only while it holds no more than are free. */
  places(): number;
  readonly waitMs: number;
  refusal(): Error;
  /** Whether a request failed only because no more may be sent now. By default: never. */
  isRefusal?(error: unknown): boolean;
  /** From this precedence on: a quarter of the places is theirs, and they may wait while none can be sent. */
  readonly preferredFrom?: number;
}

/** One in this many places is for preferred questions. */
const PREFERRED_DIVISOR = 4;

/** Too short for a buyer to notice, long enough for a burst to share a request. */
const BATCH_WINDOW_MS = 4;
/** Under load, at most a hundred requests a second, even with fast answers. */
const PAUSE_MS = 10;
/** A fifth of a block. A provider that hangs delays the next buyers by no more. */
const LONGEST_WAIT_MS = 100;

/** `signal` ends this caller's wait. A higher `precedence` (default 0) comes first, then clients take turns. */
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
 * `ask` answers up to `most` questions in order, with an Error for one without an answer. It rejects when none has one.
 * `ready` resolves when a request may be sent. Questions that arrive meanwhile join it.
 */
export function createSharedReads<Q, A>(
  clock: Clock,
  ask: (questions: readonly Q[]) => Promise<readonly (A | Error)[]>,
  most: number,
  queue?: Queue,
  ready?: () => Promise<void>,
): SharedRead<Q, A> {
  const places = queue && createFairStock(queue.places);
  let waiting: Waiting<Q, A>[] = [];
  let underWay = 0;
  let isHeld = false;
  let isWatched = false;
  // A question waited too long for a request that may not be sent yet.
  let isStuck = false;
  // Only the latest alarm sends a request.
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
    else if (waiting.length > 0) void setAlarm(LONGEST_WAIT_MS);
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
    if (underWay === 0 && waiting.length > 0) void setAlarm(PAUSE_MS);
  }

  function waitAgain(batch: readonly Waiting<Q, A>[]): void {
    const staying = batch.filter(({ hasLeft }) => !hasLeft);
    waiting = [...staying, ...waiting].sort((one, other) => one.sinceMs - other.sinceMs);
    keepWatch();
    if (waiting.length > 0) void setAlarm(LONGEST_WAIT_MS);
  }

  function keepWatch(): void {
    if (!queue || isWatched) return;
    isWatched = true;
    void watch(queue);
  }

  /** Refuses questions that have waited too long, while any waits. */
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
    else if (waiting.length === 1) void setAlarm(underWay === 0 ? BATCH_WINDOW_MS : LONGEST_WAIT_MS);
    return promise.finally(() => {
      places?.give(client);
      signal.removeEventListener('abort', leave);
    });
  };
}

function takePlace(
  { places, preferredFrom }: Queue,
  stock: FairStock | undefined,
  { client, precedence, isStuck }: { client: string; precedence: number; isStuck: boolean },
): boolean {
  const isPreferred = preferredFrom !== undefined && precedence >= preferredFrom;
  if (isStuck && !isPreferred) return false;
  const spared = preferredFrom === undefined || isPreferred ? 0 : Math.ceil(places() / PREFERRED_DIVISOR);
  return stock?.take(client, 1, spared) ?? true;
}

/** The next request's questions: the highest precedence first, clients in turns. */
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
