import { TooMany } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';

const HOUR_MS = 3_600_000;
/** Some 2 MB at most; past it the one whose hour began first is forgotten. */
const MAX_CLIENTS = 10_000;

/**
 * Counts one client's submissions, each client in its own hour that begins with the first, and throws TooMany above the limit: every one
 * of them has us call a stranger's server several times. 0 is off.
 */
export function createSubmitLimit(perHour: number, clock: Clock): (client: string) => void {
  const hours = new Map<string, { count: number; readonly endsAtMs: number }>();
  return (client) => {
    if (perHour === 0) return;
    const now = clock.nowMs();
    const known = hours.get(client);
    const hour = known && known.endsAtMs > now ? known : { count: 0, endsAtMs: now + HOUR_MS };
    if (hour !== known) {
      hours.delete(client);
      const oldest = hours.size >= MAX_CLIENTS ? hours.keys().next().value : undefined;
      if (oldest !== undefined) hours.delete(oldest);
      hours.set(client, hour);
    }
    hour.count += 1;
    if (hour.count <= perHour) return;
    const waitSeconds = Math.ceil((hour.endsAtMs - now) / 1000);
    throw new TooMany('submit_limited', `One client may submit ${perHour} addresses an hour.`, waitSeconds);
  };
}
