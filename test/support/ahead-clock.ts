import { type Clock, systemClock } from '../../src/lib/clock.ts';

/** The machine's clock, moved ahead by `aheadMs`. Its sleeps take as long as the machine's. */
export function createAheadClock(): Clock & { aheadMs: number } {
  const clock = { ...systemClock, aheadMs: 0, nowMs: () => systemClock.nowMs() + clock.aheadMs };
  return clock;
}
