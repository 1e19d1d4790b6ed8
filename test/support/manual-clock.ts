import type { Clock } from '../../src/lib/clock.ts';

/** A clock that moves only when the test moves it. Sleeps end in the order of their times, each before the next. */
export interface ManualClock extends Clock {
  /** Moves the clock, and returns when the woken code has run, including its network calls on this machine. */
  advance(ms: number): Promise<void>;
  /** The remaining times of all pending sleeps, shortest first. */
  pendingSleeps(): number[];
}

export function createManualClock(startMs: number): ManualClock {
  let now = startMs;
  let waiting: { at: number; wake: () => void }[] = [];
  const due = () => waiting.sort((a, b) => a.at - b.at)[0];
  return {
    nowMs: () => now,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        const pending = { at: now + ms, wake: resolve };
        waiting.push(pending);
        signal?.addEventListener('abort', () => {
          waiting = waiting.filter((other) => other !== pending);
          reject(signal.reason);
        });
      }),
    async advance(ms) {
      const end = now + ms;
      for (let next = due(); next && next.at <= end; next = due()) {
        now = next.at;
        waiting.shift();
        next.wake();
        await new Promise((done) => setImmediate(done));
      }
      now = end;
    },
    pendingSleeps: () => waiting.map(({ at }) => at - now).sort((a, b) => a - b),
  };
}
