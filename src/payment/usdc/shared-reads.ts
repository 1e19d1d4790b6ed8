import type { Clock } from '../../lib/clock.ts';

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
}

/** Answers a question together with others of the same time; `signal` ends this caller's waiting alone. */
export type SharedRead<Q, A> = (question: Q, signal: AbortSignal) => Promise<A>;

interface Waiting<Q, A> {
  readonly question: Q;
  resolve(answer: A): void;
  reject(error: unknown): void;
}

/**
 * Lets concurrent callers share requests: the more there are and the slower the answers, the more go into one.
 * 1. A question waits a moment for others; where requests are under way, until they are answered and a moment more, which is what
 *    gathers a crowd before a fast node. Not for long, though: a request that hangs must not hold up the rest.
 * 2. As soon as there are as many as one request takes, it goes out.
 * 3. A request is nobody's own: it goes on when a caller leaves, and when it fails, it fails for all who wait for it.
 */
export function createSharedReads<Q, A>(options: SharedReadsOptions<Q, A>): SharedRead<Q, A> {
  const { ask, gatherMs, pauseMs, longestWaitMs, most, clock } = options;
  let waiting: Waiting<Q, A>[] = [];
  let underWay = 0;
  // Only the latest alarm sends.
  let alarms = 0;

  async function setAlarm(ms: number): Promise<void> {
    const alarm = ++alarms;
    await clock.sleep(ms);
    if (alarm === alarms) void send();
  }

  async function send(): Promise<void> {
    alarms++;
    const batch = waiting;
    waiting = [];
    if (batch.length === 0) return;
    underWay++;
    try {
      const answers = await ask(batch.map(({ question }) => question));
      batch.forEach((one, at) => {
        const answer = answers[at];
        if (answer === undefined || answer instanceof Error)
          one.reject(answer ?? new Error('a question without answer'));
        else one.resolve(answer);
      });
    } catch (error) {
      for (const one of batch) one.reject(error);
    }
    underWay--;
    if (underWay === 0 && waiting.length > 0) void setAlarm(pauseMs);
  }

  return (question, signal) => {
    const { promise, resolve, reject } = Promise.withResolvers<A>();
    if (signal.aborted) return Promise.reject(signal.reason);
    const one = { question, resolve, reject };
    const leave = () => {
      waiting = waiting.filter((other) => other !== one);
      reject(signal.reason);
    };
    signal.addEventListener('abort', leave, { once: true });
    waiting.push(one);
    if (waiting.length === most) void send();
    else if (waiting.length === 1) void setAlarm(underWay === 0 ? gatherMs : longestWaitMs);
    return promise.finally(() => signal.removeEventListener('abort', leave));
  };
}
