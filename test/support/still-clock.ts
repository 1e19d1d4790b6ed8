import { type Clock, systemClock } from '../../src/lib/clock.ts';

/** The machine's clock, which shows one time from `stop` to `start`. Its sleeps take as long as the machine's at all times. */
export function createStillClock(): Clock & { stop(): void; start(): void } {
  let stillMs: number | null = null;
  return {
    ...systemClock,
    nowMs: () => stillMs ?? systemClock.nowMs(),
    stop: () => {
      stillMs = systemClock.nowMs();
    },
    start: () => {
      stillMs = null;
    },
  };
}
