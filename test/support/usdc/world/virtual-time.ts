import type { Clock } from '../../../../src/lib/clock.ts';

/** Time that passes from one event to the next; what is due at the same time comes in the order in which it was scheduled. */
export interface VirtualTime {
  readonly clock: Clock;
  at(ms: number, act: () => void): void;
  /** Lets everything happen until then, promises included. */
  runUntil(ms: number): Promise<void>;
}

interface Due {
  readonly ms: number;
  readonly act: () => void;
}

/** Work that awaits nothing but promises and the event loop's next turn has come to rest after so many turns. */
const TURNS = 3;

export function createVirtualTime(startMs: number): VirtualTime {
  let now = startMs;
  // In the order in which they are due.
  const due: Due[] = [];
  const settled = async (): Promise<void> => {
    for (let turn = 0; turn < TURNS; turn++) await new Promise((next) => setImmediate(next));
  };

  function at(ms: number, act: () => void): void {
    let place = due.length;
    while (place > 0 && (due[place - 1] as Due).ms > ms) place--;
    due.splice(place, 0, { ms, act });
  }

  const sleep: Clock['sleep'] = (ms, signal) =>
    new Promise((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason);
      signal?.addEventListener('abort', () => reject(signal.reason), { once: true });
      at(now + ms, resolve);
    });

  return {
    clock: { nowMs: () => now, sleep },
    at,
    async runUntil(ms) {
      await settled();
      for (let next = due[0]; next && next.ms <= ms; next = due[0]) {
        now = Math.max(now, next.ms);
        due.shift();
        next.act();
        await settled();
      }
      now = ms;
    },
  };
}
