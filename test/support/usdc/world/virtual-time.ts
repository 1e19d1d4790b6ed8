import type { Clock } from '../../../../src/lib/clock.ts';

/** Virtual time: it jumps from one event to the next. Events due at the same time come in the order in which they were scheduled. */
export interface VirtualTime {
  readonly clock: Clock;
  at(ms: number, act: () => void): void;
  /** Runs all events up to that time, with their promises. */
  runUntil(ms: number): Promise<void>;
}

interface Due {
  readonly ms: number;
  readonly act: () => void;
}

/** After this many turns of the event loop, work that awaits only promises has come to rest. */
const TURNS = 3;

export function createVirtualTime(startMs: number): VirtualTime {
  let now = startMs;
  // Events in the order in which they are due.
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
