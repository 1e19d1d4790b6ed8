import type { IncomingMessage } from 'node:http';
import type { FastifyInstance, onRequestHookHandler } from 'fastify';
import { AppError } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import { clientKey, countClient, createMinuteWindows, openClientWindows, type Standing } from '../lib/limits/count.ts';

/** Limits of groups of routes: a plugin calls one before it mounts its routes. Plugins of one group count together. */
export interface Limited {
  readonly limits: Readonly<Record<'free' | 'priced', (app: FastifyInstance) => void>>;
}

interface RateLimitOptions {
  /** Requests of one client over all routes of the group; an IPv6 site (/48) has four times as many. 0 is off. */
  perMinute: number;
  clock: Clock;
  presentsPayment(message: IncomingMessage): boolean;
  maxClients?: number;
}

/** Limits a group before anything else runs, the 402 included. Off, it adds no hook. */
export function createGroupLimit(options: RateLimitOptions): (app: FastifyInstance) => void {
  if (options.perMinute === 0) return () => {};
  const hook = createRateLimit(options);
  return (app) => void app.addHook('onRequest', hook);
}

/**
 * Limits a group of routes per client: 429 with `Retry-After` above the limit. Synchronous, over one Map:
 * @fastify/rate-limit uses promises, at about twice the cost (figures in README.md beside this). With trusted proxies
 * `request.ip` is the client's address that they report.
 */
function createRateLimit(options: RateLimitOptions): onRequestHookHandler {
  const { perMinute, clock, presentsPayment, maxClients } = options;
  const windows = openClientWindows(() => createMinuteWindows(clock, maxClients), 'requests');
  const ofClient = String(perMinute);
  return (request, reply, done) => {
    const standing = countClient(perMinute, windows, clientKey(request.ip));
    reply.header('ratelimit-limit', standing.of === 'client' ? ofClient : String(standing.limit));
    reply.header('ratelimit-remaining', String(Math.max(0, standing.left)));
    reply.header('ratelimit-reset', String(standing.resetSeconds));
    if (standing.left >= 0) return done();
    done(rateLimited(standing, presentsPayment(request.raw)));
  };
}

/** The headers of the limit that the client reaches first. */
export function rateLimitHeaders({ limit, left, resetSeconds }: Standing): Readonly<Record<string, string>> {
  return {
    'ratelimit-limit': String(limit),
    'ratelimit-remaining': String(Math.max(0, left)),
    'ratelimit-reset': String(resetSeconds),
  };
}

/**
 * With a payment it says `charged: "unknown"`: the ledger was not read, and the payment may repeat one whose answer was
 * lost. A request that is refused for its form (414, 431, unreadable) says `false`: it can never have been sold.
 */
export function rateLimited({ of, limit, resetSeconds }: Standing, isPaid: boolean): AppError {
  const detail = `More than ${limit} requests a minute from one ${of === 'site' ? '/48 network' : 'client'}.`;
  const options = { retryAfterSeconds: resetSeconds };
  if (!isPaid) return new AppError(429, 'rate_limited', detail, options);
  const unseen = `${detail} The payment was not looked at: present the same one again.`;
  return new AppError(429, 'rate_limited', unseen, { ...options, charged: 'unknown' });
}
