import type { Clock } from './clock.ts';
import type { Log } from './common.ts';

// Tasks that many callers share, waits that end in time, loops, and rounds of upkeep.

interface Flight<T> {
  readonly result: Promise<T>;
  readonly control: AbortController;
  waiters: number;
}

/** One task for all callers of a key at once; its failure is for all. It is aborted when the last caller has. */
export function createSingleFlight<T, K = string>() {
  const flights = new Map<K, Flight<T>>();

  function start(key: K, task: (signal: AbortSignal) => Promise<T>): Flight<T> {
    const control = new AbortController();
    const flight: Flight<T> = {
      control,
      waiters: 0,
      result: task(control.signal).finally(() => {
        if (flights.get(key) === flight) flights.delete(key);
      }),
    };
    flights.set(key, flight);
    return flight;
  }

  return async (key: K, signal: AbortSignal | undefined, task: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    signal?.throwIfAborted();
    const flight = flights.get(key) ?? start(key, task);
    flight.waiters += 1;
    try {
      return await (signal ? orAborted(flight.result, signal) : flight.result);
    } finally {
      flight.waiters -= 1;
      if (flight.waiters === 0 && flights.get(key) === flight) {
        // No caller may join a task that is being aborted.
        flights.delete(key);
        flight.control.abort(signal?.reason);
      }
    }
  };
}

/** Callers share a reading, or its failure, that is under way or began within `keptMs`. */
export function keepReading<T>(read: () => Promise<T>, keptMs: number, clock: Clock): () => Promise<T> {
  let last: { readonly result: Promise<T>; readonly startedMs: number; isUnderWay: boolean } | null = null;

  function begin(): Promise<T> {
    const begun = { result: read(), startedMs: clock.nowMs(), isUnderWay: true };
    const end = () => {
      begun.isUnderWay = false;
    };
    begun.result.then(end, end);
    last = begun;
    return begun.result;
  }

  return () => {
    // Absolute: a clock that was set back keeps no reading for longer.
    const isFresh = last && (last.isUnderWay || Math.abs(clock.nowMs() - last.startedMs) < keptMs);
    return last && isFresh ? last.result : begin();
  };
}

interface SharedRun<T> {
  (): Promise<T>;
  /** Resolves when no run is under way, or rejects as that does. */
  idle(): Promise<void>;
}

/** Callers during a run share it, or its failure. */
export function shareRun<T>(task: () => Promise<T>): SharedRun<T> {
  let running: Promise<T> | null = null;
  const run = (): Promise<T> => {
    running ??= task().finally(() => {
      running = null;
    });
    return running;
  };
  return Object.assign(run, { idle: async () => void (await running) });
}

/** Keeps the value. After a failure the next call tries again. */
export function makeOnce<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => {
    made ??= make().catch((error: unknown) => {
      made = undefined;
      throw error;
    });
    return made;
  };
}

/** The items of one turn of the event loop are one message. */
export function createBundle<T>(send: (items: readonly T[]) => void): (item: T) => void {
  let waiting: T[] = [];
  return (item) => {
    waiting.push(item);
    if (waiting.length > 1) return;
    setImmediate(() => {
      const items = waiting;
      waiting = [];
      send(items);
    });
  };
}

/** Rejects with the signal's reason if it aborts first. A later result is ignored. */
export function orAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  return new Promise<T>((resolve, reject) => {
    const onAbort = () => reject(signal.reason);
    if (signal.aborted) onAbort();
    else signal.addEventListener('abort', onAbort, { once: true });
    promise
      .then(resolve, (error: unknown) => reject(signal.aborted ? signal.reason : error))
      .finally(() => signal.removeEventListener('abort', onAbort));
  });
}

/** Without a reason, stopping the timer would make an error with a stack. */
const SETTLED = 'settled';

/** Rejects with `late` after `ms`. What comes later is ignored: newer results may exist. */
export async function inTime<T>(asked: Promise<T>, ms: number, clock: Clock, late: () => Error): Promise<T> {
  const timer = new AbortController();
  const over = clock.sleep(ms, timer.signal).then(() => {
    throw late();
  });
  try {
    return await Promise.race([asked, over]);
  } finally {
    timer.abort(SETTLED);
  }
}

/** Waits for every part, then rejects with the first failure in their order. */
export async function allTried(parts: readonly unknown[]): Promise<void> {
  const failed = (await Promise.allSettled(parts)).find((part) => part.status === 'rejected');
  if (failed) throw failed.reason;
}

/**
 * Steps one after the other. `stop` ends a wait at once and waits for a step. A step returns the milliseconds until the
 * next; it must not reject, and ends soon after its signal aborts.
 */
export function createLoop(clock: Clock, step: (signal: AbortSignal) => Promise<number>, firstMs = 0) {
  const ended = new AbortController();
  const { signal } = ended;
  let running: Promise<void> | null = null;
  const pause = (ms: number) => clock.sleep(Math.max(ms, 0), signal).catch(() => undefined);

  async function run(): Promise<void> {
    if (firstMs > 0) await pause(firstMs);
    while (!signal.aborted) await pause(await step(signal));
  }

  return {
    signal,
    start(): void {
      running ??= run();
    },
    /** Safe at any time. Callers that hold the signal get the reason. */
    async stop(reason?: Error): Promise<void> {
      ended.abort(reason);
      await running;
    },
  };
}

interface Rounds extends SharedRun<void> {
  isFailing(): boolean;
}

/** Never twice at once. Of failures in a row only the first is logged: a fault may last for hours. */
export function createRounds(work: () => Promise<unknown> | undefined, log: Pick<Log, 'info' | 'warn'>): Rounds {
  let failed = 0;

  const round = shareRun(async (): Promise<void> => {
    try {
      await work();
      if (failed > 0) log.info({ rounds: failed }, 'maintenance works again');
      failed = 0;
    } catch (err) {
      failed += 1;
      if (failed === 1) log.warn({ err }, 'maintenance failed; the next line about it says that it works again');
    }
  });
  return Object.assign(round, { isFailing: () => failed > 0 });
}
