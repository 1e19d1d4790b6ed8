import { TooMany } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';

const WINDOW_MS = 60_000;
/** Hosts remembered at once; past it the one whose window began first is forgotten. */
const MAX_HOSTS = 10_000;

/**
 * Bounds the requests a minute that all payers together may have us send to one host (0 is off): what is never charged must not make
 * us anybody's means of flooding somebody. Throws TooMany (429), which costs the buyer nothing.
 */
export function createHostLimit(perMinute: number, clock: Clock): (host: string) => void {
  const windows = new Map<string, { count: number; endsAtMs: number }>();
  return (host) => {
    if (perMinute === 0) return;
    const now = clock.nowMs();
    let window = windows.get(host);
    if (!window || window.endsAtMs <= now) {
      windows.delete(host);
      const oldest = windows.size >= MAX_HOSTS ? windows.keys().next().value : undefined;
      if (oldest !== undefined) windows.delete(oldest);
      window = { count: 0, endsAtMs: now + WINDOW_MS };
      windows.set(host, window);
    }
    window.count += 1;
    if (window.count <= perMinute) return;
    const waitSeconds = Math.ceil((window.endsAtMs - now) / 1000);
    throw new TooMany(
      'host_limited',
      `This service sends one host at most ${perMinute} requests a minute.`,
      waitSeconds,
    );
  };
}
