import { TooMany } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { createMinuteWindows } from '../../lib/limits/windows.ts';

/**
 * Limits the requests a minute to one host, for all payers together (0 is off). Failed calls are not charged, so without the limit an attacker
 * could use this service to flood a host for free. Throws TooMany (429), which costs the buyer nothing.
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
