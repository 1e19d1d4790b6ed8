import { TooMany } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { createMinuteWindows } from '../../lib/limits/minute-windows.ts';

/**
 * Bounds the requests a minute that all payers together may have us send to one host (0 is off): what is never charged must not make
 * us anybody's means of flooding somebody. Throws TooMany (429), which costs the buyer nothing.
 */
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
