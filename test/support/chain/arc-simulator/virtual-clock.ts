import type { Clock } from '../../../../src/lib/clock.ts';

interface Sleeper {
  readonly untilMs: number;
  readonly wake: () => void;
}

/** Time that passes only while nothing else can happen. */
export interface VirtualClock extends Clock {
  /** Lets time pass by hand: an answer that took long, or a span in which nothing runs. */
  jump(ms: number): void;
  /** Resolves when time has come so far. */
  until(ms: number): Promise<void>;
}

/**
 * A clock that jumps to the earliest sleeper's end as soon as `lanes` tasks sleep at once: then no request is under way, and a real clock would only make the
 * test wait. Two and a half minutes of chain pass in a second.
 */
export function createVirtualClock(startMs: number, lanes: number): VirtualClock {
  let nowMs = startMs;
  let sleepers: Sleeper[] = [];
  let watchers: Sleeper[] = [];

  const fire = (list: readonly Sleeper[]): Sleeper[] => {
    const due = list.filter(({ untilMs }) => untilMs <= nowMs);
    for (const { wake } of due) wake();
    return list.filter(({ untilMs }) => untilMs > nowMs);
  };
  const moveTo = (ms: number) => {
    nowMs = Math.max(nowMs, ms);
    watchers = fire(watchers);
    sleepers = fire(sleepers);
  };
  const advance = () => {
    if (sleepers.length >= lanes) moveTo(Math.min(...sleepers.map(({ untilMs }) => untilMs)));
  };

  return {
    nowMs: () => nowMs,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        const onAbort = () => {
          sleepers = sleepers.filter((other) => other !== sleeper);
          reject(signal?.reason);
        };
        const sleeper = {
          untilMs: nowMs + ms,
          wake: () => {
            signal?.removeEventListener('abort', onAbort);
            resolve();
          },
        };
        signal?.addEventListener('abort', onAbort, { once: true });
        sleepers.push(sleeper);
        setImmediate(advance);
      }),
    jump: (ms) => moveTo(nowMs + ms),
    until: (ms) =>
      new Promise((resolve) => {
        watchers.push({ untilMs: ms, wake: resolve });
        watchers = fire(watchers);
      }),
  };
}
