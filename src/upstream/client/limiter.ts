import { TooMany } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { createMinuteWindows } from '../../lib/limits/count.ts';
import { orAborted } from '../../lib/tasks.ts';

/** Thrown when the queue is full, or when a task has waited for `waitMs`. The task was not started. */
export class LimiterFull extends Error {
  constructor() {
    super('the queue is full');
    this.name = 'LimiterFull';
  }
}

/**
 * Runs at most `running` tasks at once, the others in the order of the calls. One waits `waitMs`, or without
 * it until its signal aborts. Rejects with LimiterFull.
 */
export function createLimiter(running: number, waiting: number, waitMs?: number) {
  // Invariant: no task waits while a place is free.
  let free = running;
  const queue = new Set<() => void>();

  function leave(): void {
    const [next] = queue;
    if (next === undefined) {
      free += 1;
      return;
    }
    queue.delete(next);
    next();
  }

  async function enter(signal: AbortSignal): Promise<void> {
    if (free > 0) {
      free -= 1;
      return;
    }
    if (queue.size >= waiting) throw new LimiterFull();
    let timer: NodeJS.Timeout | undefined;
    let start: (() => void) | undefined;
    const granted = new Promise<void>((resolve, reject) => {
      start = resolve;
      queue.add(resolve);
      if (waitMs !== undefined) timer = setTimeout(() => reject(new LimiterFull()), waitMs);
    });
    try {
      await orAborted(granted, signal);
    } catch (error) {
      // The task may have got its place in the moment in which it gave up. Then the place goes to the next task.
      if (start && !queue.delete(start)) leave();
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }

  return {
    async run<T>(signal: AbortSignal, task: () => Promise<T>): Promise<T> {
      await enter(signal);
      try {
        return await task();
      } finally {
        leave();
      }
    },
  };
}

/** Requests a minute to a host, for all payers (0 is off); throws TooMany (429). Failed calls are free: no floods. */
export function createHostLimit(perMinute: number, clock: Clock): (host: string) => void {
  const windows = createMinuteWindows(clock);
  return (host) => {
    if (perMinute === 0) return;
    const { count, resetSeconds } = windows.count(host);
    if (count <= perMinute) return;
    throw new TooMany(
      'host_limited',
      `This service sends one host at most ${perMinute} requests a minute.`,
      resetSeconds,
    );
  };
}
