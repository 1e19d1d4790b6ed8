import { orAborted } from './deadline.ts';

/** Thrown when too many wait already, or when one's turn did not come in time; nothing was begun. */
export class NoRoom extends Error {
  constructor() {
    super('no room');
    this.name = 'NoRoom';
  }
}

interface LimiterOptions {
  /** Tasks that run at the same time. */
  readonly running: number;
  /** Tasks that may wait for their turn. */
  readonly waiting: number;
  /** How long one may wait; unset: until its signal aborts. */
  readonly waitMs?: number;
}

/** Runs at most so many tasks at once, the others in the order in which they came; a task that can't wait throws NoRoom. */
export function createLimiter({ running, waiting, waitMs }: LimiterOptions) {
  // Invariant: nobody waits while a slot is free.
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
    if (queue.size >= waiting) throw new NoRoom();
    let timer: NodeJS.Timeout | undefined;
    let turn: (() => void) | undefined;
    const granted = new Promise<void>((resolve, reject) => {
      turn = resolve;
      queue.add(resolve);
      if (waitMs !== undefined) timer = setTimeout(() => reject(new NoRoom()), waitMs);
    });
    try {
      await orAborted(granted, signal);
    } catch (error) {
      // Its turn may have come in the same moment in which it gave up: then the slot goes to the next.
      if (turn && !queue.delete(turn)) leave();
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
