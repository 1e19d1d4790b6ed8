import { Gauge, type Registry } from 'prom-client';
import { Agent } from 'undici';
import type { z } from 'zod';
import type { Config } from '../../config.ts';
import { Unavailable, UpstreamFailed } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import { boundedMap } from '../../lib/limits/count.ts';
import { createOutcomes, type Outcome, type Outcomes } from '../../lib/outcomes.ts';
import { createSingleFlight } from '../../lib/tasks.ts';
import type { DialOptions } from '../guard/dial.ts';
import { followRedirects } from '../guard/follow.ts';
import { createResolve } from '../guard/guard.ts';
import { type Exchange, parseJson } from './exchange.ts';
import { ExchangeFailed, withinDeadline } from './failure.ts';
import { createHostLimit, createLimiter, LimiterFull } from './limiter.ts';

/** One request to an upstream. Missing options are the upstream's defaults. */
export interface UpstreamRequest {
  readonly url: string;
  readonly method?: 'GET' | 'HEAD' | 'POST';
  readonly headers?: Record<string, string>;
  readonly body?: string;
  /** Of the whole call: redirects, retry, queue and body included. It can only shorten the upstream's own. */
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
  readonly accept?: string;
  readonly signal?: AbortSignal | undefined;
}

/** Where something was read, and when. */
export interface Retrieved {
  readonly url: string;
  readonly retrievedAtMs: number;
}

export interface Dated<T> extends Retrieved {
  readonly data: T;
}

/** `url` is the address after redirects, `body` decoded. */
interface UpstreamResponse extends Retrieved {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Record<string, string>;
  readonly body: Buffer;
}

/** One source of data. Every failure names it. */
export interface Upstream {
  readonly name: string;
  /** The answer, whatever its status. Throws UpstreamFailed (502) for none and Unavailable (503) for a full queue. */
  fetch(request: UpstreamRequest): Promise<UpstreamResponse>;
  /** 2xx JSON that fits the schema, or null for 404. Rejects with UpstreamFailed for anything else. */
  json<T>(request: UpstreamRequest, schema: z.ZodType<T>): Promise<T | null>;
  jsonDated<T>(request: UpstreamRequest, schema: z.ZodType<T>): Promise<Dated<T> | null>;
}

/** The options of one upstream. With a cache all requests count as reads, POST included: they are shared and cached. */
export interface UpstreamOptions {
  readonly name: string;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly concurrency: number;
  readonly retries: 0 | 1;
  /** Requests a minute to one host; one more is 429. Answers from the cache do not count. Unset: no limit. */
  readonly perMinute?: number;
  readonly cache?: CacheOptions;
  /** The only certificate authority (PEM) that is trusted, for a node with its own certificate. */
  readonly ca?: string;
  /** Only for a library that must send the request itself. Queue, breaker, deadline, cache and retry still apply. */
  readonly transport?: Transport;
}

interface CacheOptions {
  readonly ttlMs: number;
  /** How long after `ttlMs` an answer may still be used when the source fails. */
  readonly staleIfErrorMs: number;
  readonly maxEntries: number;
}

/** One exchange, redirects included: ends when `signal` aborts, reads at most `maxBytes`, fails as ExchangeFailed. */
export type Transport = (
  sent: Exchange,
  maxBytes: number,
  signal: AbortSignal,
) => Promise<Omit<UpstreamResponse, 'retrievedAtMs'>>;

export interface UpstreamLog {
  warn(fields: Record<string, unknown>, message: string): void;
}

interface UpstreamsDeps {
  readonly clock: Clock;
  /** Names the service, its version and a contact. */
  readonly userAgent: string;
  readonly log?: UpstreamLog;
  /** How hosts are connected to that an upstream redirects to. */
  readonly dial?: DialOptions;
}

export interface Upstreams {
  open(options: UpstreamOptions): Upstream;
  /** The newest success and failure of each source that was opened. Answers from a cache do not count. */
  outcomes(): readonly Outcome[];
  close(): Promise<void>;
}

/** What a source is made with; it names the tables of the configuration that it reads. */
export interface Opening<K extends keyof Config = keyof Config> {
  readonly upstreams: Pick<Upstreams, 'open'>;
  readonly config: Pick<Config, K>;
  readonly clock: Clock;
}

export const MIB = 1024 * 1024;
export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;

/** Connecting takes one or two round trips. */
const CONNECT_MS = 3000;
/** Waiting calls for each running one. With calls of a second each, every one is served before it times out. */
const WAITING_PER_RUNNING = 16;

/** The client of all named sources. Opens nothing until the first request. */
export function createUpstreams(deps: UpstreamsDeps): Upstreams {
  const outcomes = createOutcomes(deps.clock);
  const parts = { dial: { resolve: createResolve() }, outcomes, ...deps };
  const agents: Agent[] = [];
  return {
    open(options) {
      const agent = new Agent({
        connections: options.concurrency,
        connect: {
          timeout: Math.min(CONNECT_MS, options.timeoutMs),
          ...(options.ca !== undefined && { ca: options.ca }),
        },
        headersTimeout: options.timeoutMs,
        bodyTimeout: options.timeoutMs,
      });
      agents.push(agent);
      outcomes.expect(options.name);
      return openUpstream(options, agent, parts);
    },
    outcomes: outcomes.all,
    close: async () => {
      await Promise.all(agents.map((agent) => agent.destroy()));
    },
  };
}

/** Publishes whether each source answered when it was asked last, with no sample before its first answer or failure. */
export function publishSources(registry: Registry, { outcomes }: Pick<Upstreams, 'outcomes'>): void {
  new Gauge({
    name: 'source_up',
    help: '1 while the newest question to this source was answered, else 0',
    labelNames: ['source'],
    registers: [registry],
    collect() {
      for (const { name, okAtMs, failedAtMs } of outcomes())
        if (okAtMs ?? failedAtMs) this.set({ source: name }, (okAtMs ?? 0) >= (failedAtMs ?? 0) ? 1 : 0);
    },
  });
}

type Parts = Required<Omit<UpstreamsDeps, 'log'>> & Pick<UpstreamsDeps, 'log'> & { readonly outcomes: Outcomes };

/**
 * A call ends with the first of: a fresh answer from the cache, or of the same request under way; the exchange, within
 * the queue, the breaker and one deadline; after a failure, 429 or 5xx, a stale answer from the cache.
 */
function openUpstream(options: UpstreamOptions, agent: Agent, deps: Parts): Upstream {
  const { clock, log, outcomes } = deps;
  const { name, concurrency } = options;
  const limiter = createLimiter(concurrency, concurrency * WAITING_PER_RUNNING);
  const limitHost = createHostLimit(options.perMinute ?? 0, clock);
  const breaker = createBreaker(clock);
  const cache = options.cache && createResponseCache(options.cache, clock);
  const share = createSingleFlight<UpstreamResponse>();
  const exchange = createExchange(options, agent, deps);

  async function ask(request: UpstreamRequest, signal: AbortSignal | undefined): Promise<UpstreamResponse> {
    const timeoutMs = Math.min(request.timeoutMs ?? options.timeoutMs, options.timeoutMs);
    const { origin, host } = new URL(request.url);
    limitHost(host);
    const work = (within: AbortSignal) =>
      limiter.run(within, async () => {
        if (!breaker.allows(origin))
          throw new ExchangeFailed('connecting', 'has failed too often and is left alone for now');
        return reported(breaker, origin, clock, () => exchange(request, within));
      });
    try {
      const got = await withinDeadline(timeoutMs, signal, work);
      if (isTrouble(got.status)) outcomes.failed(name, `answered HTTP ${got.status}`);
      else outcomes.succeeded(name);
      return got;
    } catch (error) {
      if (error instanceof ExchangeFailed) {
        outcomes.failed(name, error.message);
        log?.warn({ upstream: name, origin, reason: error.message, err: error.cause }, 'an upstream failed');
      }
      throw named(name, error);
    }
  }

  async function askAndKeep(key: string, request: UpstreamRequest, signal?: AbortSignal): Promise<UpstreamResponse> {
    if (!cache) return ask(request, signal);
    const stale = cache.stale(key);
    const got = await ask(request, signal).catch((error: unknown) => {
      if (stale === undefined || signal?.aborted) throw error;
      return stale;
    });
    if (isTrouble(got.status)) return stale ?? got;
    if (got !== stale && (got.status < 300 || got.status === 404)) cache.keep(key, got);
    return got;
  }

  async function fetch(request: UpstreamRequest): Promise<UpstreamResponse> {
    const { method = 'GET', signal, ...rest } = request;
    if (method === 'POST' && !cache) return ask(request, signal);
    const key = JSON.stringify([method, rest.url, rest.accept, rest.headers, rest.body, rest.timeoutMs, rest.maxBytes]);
    return cache?.fresh(key) ?? share(key, signal, (shared) => askAndKeep(key, { method, ...rest }, shared));
  }

  async function jsonDated<T>(request: UpstreamRequest, schema: z.ZodType<T>): Promise<Dated<T> | null> {
    const { status, headers, body, retrievedAtMs, url } = await fetch(request);
    if (status === 404) return null;
    if (status < 200 || status > 299) throw new UpstreamFailed(name, `answered HTTP ${status}`);
    return { data: parseJson(name, headers['content-type'], body, schema), retrievedAtMs, url };
  }

  return { name, fetch, jsonDated, json: async (request, schema) => (await jsonDated(request, schema))?.data ?? null };
}

function createExchange(options: UpstreamOptions, agent: Agent, { clock, userAgent, dial }: Parts) {
  return async (request: UpstreamRequest, signal: AbortSignal): Promise<UpstreamResponse> => {
    const { accept, headers, method = 'GET', maxBytes = options.maxBytes } = request;
    const sent = {
      url: new URL(request.url),
      method,
      headers: { 'user-agent': userAgent, accept: accept ?? 'application/json', ...headers },
      body: request.body,
    };
    const transport = options.transport ?? followRedirects.bind(null, agent, dial);
    const once = () => transport(sent, Math.min(maxBytes, options.maxBytes), signal);
    const repeatable = options.retries === 1 && method !== 'POST';
    const got = await once().catch((error: unknown) => {
      // Retries once, and only when the server cannot have begun to answer. Repeating a read is safe.
      if (!repeatable || signal.aborted || !(error instanceof ExchangeFailed) || error.at === 'reading') throw error;
      return once();
    });
    return { ...got, retrievedAtMs: clock.nowMs() };
  };
}

/** A call that the caller aborted does not count. */
async function reported(
  breaker: Breaker,
  origin: string,
  clock: Clock,
  task: () => Promise<UpstreamResponse>,
): Promise<UpstreamResponse> {
  try {
    const response = await task();
    if (!isTrouble(response.status)) breaker.succeeded(origin);
    else breaker.failed(origin, retryAfterMs(response.headers['retry-after'], clock.nowMs()));
    return response;
  } catch (error) {
    if (error instanceof ExchangeFailed) breaker.failed(origin);
    throw error;
  }
}

function isTrouble(status: number): boolean {
  return status === 429 || status >= 500;
}

/** Retry-After in milliseconds, given in seconds or as a date; 0 when it is neither. */
function retryAfterMs(header: string | undefined, nowMs: number): number {
  if (header === undefined) return 0;
  if (/^\d{1,9}$/.test(header)) return Number(header) * 1000;
  const at = Date.parse(header);
  return Number.isNaN(at) ? 0 : Math.max(0, at - nowMs);
}

function named(name: string, error: unknown): unknown {
  if (error instanceof LimiterFull)
    return new Unavailable('upstream_busy', `${name}: too many calls are waiting for it`, 2);
  return error instanceof ExchangeFailed ? new UpstreamFailed(name, error.message, error) : error;
}

/** Consecutive failures that open the breaker. A few random failures do not cut a source off. */
const FAILURES = 10;
/** Short, so that a source that has recovered is asked again soon, and a dead one costs one time-out in this time. */
const REST_MS = 5000;
/** The longest pause that a server can set with Retry-After, so that no server stops a route for long. */
const MAX_REST_MS = 60_000;
const MAX_ORIGINS = 1000;

/** Leaves an origin alone after ten failures in a row, or for its Retry-After. Then one probe at a time passes. */
function createBreaker(clock: Clock) {
  const states = boundedMap<string, { failures: number; restUntilMs: number }>(MAX_ORIGINS);

  function stateOf(origin: string) {
    const state = states.peek(origin) ?? { failures: 0, restUntilMs: 0 };
    states.set(origin, state);
    return state;
  }

  return {
    /** Whether the origin may be asked now. The first `true` after a pause is a probe: others wait for its end. */
    allows(origin: string): boolean {
      const state = states.peek(origin);
      if (!state || state.restUntilMs === 0) return true;
      const now = clock.nowMs();
      if (now < state.restUntilMs) return false;
      state.restUntilMs = now + REST_MS;
      return true;
    },
    succeeded(origin: string): void {
      states.delete(origin);
    },
    failed(origin: string, restMs = 0): void {
      const state = stateOf(origin);
      state.failures += 1;
      const rest = Math.max(Math.min(restMs, MAX_REST_MS), state.failures >= FAILURES ? REST_MS : 0);
      if (rest > 0) state.restUntilMs = clock.nowMs() + rest;
    },
  };
}

type Breaker = ReturnType<typeof createBreaker>;

/** Memory for the bodies of one upstream. With a dozen upstreams the service stays well below its memory limit. */
const MAX_BYTES = 32 * 1024 * 1024;
/** One large answer must not push out all others. */
const MAX_ENTRY_BYTES = MAX_BYTES / 4;

function createResponseCache(options: CacheOptions, clock: Clock) {
  const entries = new Map<string, UpstreamResponse>();
  let bytes = 0;

  function drop(key: string): void {
    bytes -= entries.get(key)?.body.length ?? 0;
    entries.delete(key);
  }

  const within = (key: string, ageMs: number): UpstreamResponse | undefined => {
    const entry = entries.get(key);
    return entry && clock.nowMs() - entry.retrievedAtMs < ageMs ? entry : undefined;
  };

  return {
    fresh: (key: string) => within(key, options.ttlMs),
    stale: (key: string) => within(key, options.ttlMs + options.staleIfErrorMs),
    keep(key: string, entry: UpstreamResponse): void {
      drop(key);
      if (entry.body.length > MAX_ENTRY_BYTES) return;
      entries.set(key, entry);
      bytes += entry.body.length;
      for (const oldest of entries.keys()) {
        if (entries.size <= options.maxEntries && bytes <= MAX_BYTES) break;
        drop(oldest);
      }
    },
  };
}
