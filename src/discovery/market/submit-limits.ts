import { TooMany } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { countClient, createMinuteWindows, MAX_CLIENTS, openClientWindows } from '../../lib/limits/windows.ts';

const HOUR_MS = 3_600_000;

/**
 * Counts a client's submissions per hour; the hour begins with the client's first one. Throws TooMany above the limit, or above four times the limit
 * for an IPv6 /48.
 * The limit exists because each submission makes us call another operator's server several times. 0 is off.
 */
export function createSubmitLimit(perHour: number, clock: Clock): (client: string) => void {
  const windows = openClientWindows(() => createMinuteWindows(clock, MAX_CLIENTS, HOUR_MS), 'submissions');
  return (client) => {
    if (perHour === 0) return;
    const { of, limit, left, resetSeconds } = countClient(perHour, windows, client);
    if (left >= 0) return;
    const whose = of === 'site' ? 'One /48 network' : 'One client';
    throw new TooMany('submit_limited', `${whose} may submit ${limit} addresses an hour.`, resetSeconds);
  };
}
