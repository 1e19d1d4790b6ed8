import type { Clock } from '../../../../src/lib/clock.ts';

interface Waiter {
  readonly untilMs: number;
  readonly wake: () => void;
}

/** A clock whose time passes only while no other work can run. */
export interface VirtualClock extends Clock {
  /** Advances the time: for an answer that took long, or a time in which nothing runs. */
  jump(ms: number): void;
  /** Resolves when this time is reached. */
  until(ms: number): Promise<void>;
}

/**
 * A clock that jumps to the earliest end of a sleep as soon as `tasks` tasks sleep at once. No request is under way then, and a real clock would only
 * make the test wait. Two and a half minutes of chain pass in a second.
 */
export function createVirtualClock(startMs: number, tasks: number): VirtualClock {
  let nowMs = startMs;
  let waiters: Waiter[] = [];
  let watchers: Waiter[] = [];

  const fire = (list: readonly Waiter[]): Waiter[] => {
    const due = list.filter(({ untilMs }) => untilMs <= nowMs);
    for (const { wake } of due) wake();
    return list.filter(({ untilMs }) => untilMs > nowMs);
  };
  const moveTo = (ms: number) => {
    nowMs = Math.max(nowMs, ms);
    watchers = fire(watchers);
    waiters = fire(waiters);
  };
  const advance = () => {
    if (waiters.length >= tasks) moveTo(Math.min(...waiters.map(({ untilMs }) => untilMs)));
  };

  return {
    nowMs: () => nowMs,
    sleep: (ms, signal) =>
      new Promise((resolve, reject) => {
        signal?.throwIfAborted();
        const onAbort = () => {
          waiters = waiters.filter((other) => other !== waiter);
          reject(signal?.reason);
        };
        const waiter = {
          untilMs: nowMs + ms,
          wake: () => {
            signal?.removeEventListener('abort', onAbort);
            resolve();
          },
        };
        signal?.addEventListener('abort', onAbort, { once: true });
        waiters.push(waiter);
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
