import type { onRequestHookHandler } from 'fastify';
import { TooMany } from '../errors.ts';
import { clientKey } from '../lib/client-key.ts';
import type { Clock } from '../lib/clock.ts';

const WINDOW_MS = 60_000;
/** Some 2 MB at most. When more clients come in one minute, the one whose window began first is forgotten. */
const MAX_CLIENTS = 10_000;

interface Window {
  count: number;
  endsAtMs: number;
}

interface RateLimitOptions {
  /** Requests that one client may make a minute, over all routes of the group. */
  perMinute: number;
  clock: Clock;
  maxClients?: number;
}

/**
 * Makes the hook that limits a group of routes per client: `RateLimit-*` on every answer, 429 with `Retry-After` above the limit.
 * A synchronous hook over one Map: @fastify/rate-limit does the same through promises and costs about twice as much a request
 * (figures in README.md beside this). `request.ip` already is the first address no trusted proxy vouches for.
 */
export function createRateLimit({
  perMinute,
  clock,
  maxClients = MAX_CLIENTS,
}: RateLimitOptions): onRequestHookHandler {
  // Insertion order is the order in which windows began.
  const windows = new Map<string, Window>();
  const limit = String(perMinute);

  function currentWindow(key: string, now: number): Window {
    const known = windows.get(key);
    if (known && known.endsAtMs > now) return known;
    windows.delete(key);
    const oldest = windows.size >= maxClients ? windows.keys().next().value : undefined;
    if (oldest !== undefined) windows.delete(oldest);
    const fresh = { count: 0, endsAtMs: now + WINDOW_MS };
    windows.set(key, fresh);
    return fresh;
  }

  return (request, reply, done) => {
    const now = clock.nowMs();
    const window = currentWindow(clientKey(request.ip), now);
    window.count += 1;
    const resetSeconds = Math.ceil((window.endsAtMs - now) / 1000);
    reply.header('ratelimit-limit', limit);
    reply.header('ratelimit-remaining', String(Math.max(0, perMinute - window.count)));
    reply.header('ratelimit-reset', String(resetSeconds));
    if (window.count <= perMinute) return done();
    done(new TooMany('rate_limited', `More than ${limit} requests a minute from one client.`, resetSeconds));
  };
}
