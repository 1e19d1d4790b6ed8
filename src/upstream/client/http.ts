import { Agent } from 'undici';
import type { z } from 'zod';
import { Unavailable, UpstreamFailed } from '../../errors.ts';
import type { Clock } from '../../lib/clock.ts';
import type { DialOptions } from '../guard/dial.ts';
import { followRedirects } from '../guard/follow.ts';
import { createResolve } from '../guard/resolve.ts';
import { type Breaker, createBreaker, retryAfterMs } from './breaker.ts';
import { withinDeadline } from './deadline.ts';
import type { Exchange } from './exchange.ts';
import { ExchangeFailed } from './failure.ts';
import { parseJson } from './json.ts';
import { createLimiter, NoRoom } from './limiter.ts';
import { type CacheOptions, createResponseCache } from './response-cache.ts';
import { createSingleFlight } from './single-flight.ts';

/** One request to an upstream; what is left out is the upstream's own. */
export interface UpstreamRequest {
  readonly url: string;
  readonly method?: 'GET' | 'HEAD' | 'POST';
  readonly headers?: Record<string, string>;
  readonly body?: string;
  /** Bounds the whole call, redirects, retry, queue and body included; never above the upstream's own. */
  readonly timeoutMs?: number;
  readonly maxBytes?: number;
  readonly accept?: string;
  readonly signal?: AbortSignal;
}

/** A whole answer: the body decoded, `url` where it came from after redirects. */
export interface UpstreamResponse {
  readonly status: number;
  /** Names in lower case. */
  readonly headers: Record<string, string>;
  readonly body: Buffer;
  readonly url: string;
  /** When it was read: earlier than now when it was kept. */
  readonly retrievedAtMs: number;
}

/** Parsed data with the time at which it was read, for `source.retrievedAt`. */
export interface Dated<T> {
  readonly data: T;
  readonly retrievedAtMs: number;
  readonly url: string;
}

/** One source of data behind the client; every failure names it. */
export interface Upstream {
  /** Named in errors and logs, for example `osv`. */
  readonly name: string;
  /** The answer whatever its status; UpstreamFailed (502) when there is none, Unavailable (503) when too many wait already. */
  fetch(request: UpstreamRequest): Promise<UpstreamResponse>;
  /** 2xx JSON that fits the schema; null for 404; UpstreamFailed for anything else. */
  json<T>(request: UpstreamRequest, schema: z.ZodType<T>): Promise<T | null>;
  /** The same with the time of reading. */
  jsonDated<T>(request: UpstreamRequest, schema: z.ZodType<T>): Promise<Dated<T> | null>;
}

/** How one upstream is treated. A cache says that requests are reads, POST included: they are shared and kept. */
export interface UpstreamOptions {
  readonly name: string;
  readonly timeoutMs: number;
  readonly maxBytes: number;
  readonly concurrency: number;
  readonly retries: 0 | 1;
  readonly cache?: CacheOptions;
  /** The one certificate authority (PEM) that may vouch for this upstream, in place of the public ones: a node with a certificate of its own. */
  readonly ca?: string;
  /** Only where a library must do the talking; queue, breaker, deadline, cache and retry stay ours. */
  readonly transport?: Transport;
}

/** One exchange, redirects included: it ends when `signal` aborts, reads at most `maxBytes`, and fails as ExchangeFailed. */
export type Transport = (
  sent: Exchange,
  maxBytes: number,
  signal: AbortSignal,
) => Promise<Omit<UpstreamResponse, 'retrievedAtMs'>>;

/** The one level of a pino-like logger that is needed. */
export interface UpstreamLog {
  warn(fields: Record<string, unknown>, message: string): void;
}

interface UpstreamsDeps {
  readonly clock: Clock;
  /** Names the service, its version and a contact. */
  readonly userAgent: string;
  readonly log?: UpstreamLog;
  /** How hosts are reached that an upstream redirects to. */
  readonly dial?: DialOptions;
}

/** Every upstream of the service. `close` ends all connections; calls under way fail. */
export interface Upstreams {
  open(options: UpstreamOptions): Upstream;
  close(): Promise<void>;
}

/** Connecting takes one or two round trips; past this the host is down or drops our packets. */
const CONNECT_MS = 3000;
/** Waiting calls for each running one: with calls of a second, no more wait than can be served before they time out. */
const WAITING_PER_RUNNING = 16;

/** Opens nothing until the first request. */
export function createUpstreams(deps: UpstreamsDeps): Upstreams {
  const parts = { dial: { resolve: createResolve() }, ...deps };
  const agents: Agent[] = [];
  return {
    open(options) {
      const agent = new Agent({
        connections: options.concurrency,
        connect: {
          timeout: Math.min(CONNECT_MS, options.timeoutMs),
          ...(options.ca === undefined ? {} : { ca: options.ca }),
        },
        headersTimeout: options.timeoutMs,
        bodyTimeout: options.timeoutMs,
      });
      agents.push(agent);
      return openUpstream(options, agent, parts);
    },
    close: async () => {
      await Promise.all(agents.map((agent) => agent.destroy()));
    },
  };
}

type Parts = Required<Omit<UpstreamsDeps, 'log'>> & Pick<UpstreamsDeps, 'log'>;

function openUpstream(options: UpstreamOptions, agent: Agent, deps: Parts): Upstream {
  const { clock, log } = deps;
  const { name, concurrency } = options;
  const limiter = createLimiter({ running: concurrency, waiting: concurrency * WAITING_PER_RUNNING });
  const breaker = createBreaker(clock);
  const cache = options.cache && createResponseCache<UpstreamResponse>(options.cache, clock);
  const share = createSingleFlight<UpstreamResponse>();
  const exchange = createExchange(options, agent, deps);

  /** The order of a call: a place in the queue, the breaker, the exchange with its one retry. All of it under one deadline. */
  async function ask(request: UpstreamRequest, signal: AbortSignal | undefined): Promise<UpstreamResponse> {
    const timeoutMs = Math.min(request.timeoutMs ?? options.timeoutMs, options.timeoutMs);
    const { origin } = new URL(request.url);
    const work = (within: AbortSignal) =>
      limiter.run(within, async () => {
        if (!breaker.allows(origin))
          throw new ExchangeFailed('connecting', 'has failed too often and is left alone for now');
        return judged(breaker, origin, clock, () => exchange(request, within));
      });
    try {
      return await withinDeadline(timeoutMs, signal, work);
    } catch (error) {
      if (error instanceof ExchangeFailed)
        log?.warn({ upstream: name, origin, reason: error.message, err: error.cause }, 'an upstream failed');
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

/** What went wrong, in the words of an answer. */
function named(name: string, error: unknown): unknown {
  if (error instanceof NoRoom) return new Unavailable('upstream_busy', `${name}: too many calls are waiting for it`, 2);
  return error instanceof ExchangeFailed ? new UpstreamFailed(name, error.message, error) : error;
}

/** One exchange with its one retry. */
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
      // Once, and only while the server cannot have begun to answer; a second read of the same thing changes nothing.
      if (!repeatable || signal.aborted || !(error instanceof ExchangeFailed) || error.at === 'reading') throw error;
      return once();
    });
    return { ...got, retrievedAtMs: clock.nowMs() };
  };
}

/** Tells the breaker how it went; what the caller broke off says nothing about the server. */
async function judged(
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

/** The server is overloaded or broken, whatever was asked. */
function isTrouble(status: number): boolean {
  return status === 429 || status >= 500;
}
