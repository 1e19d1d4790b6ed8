import type { FastifyInstance, RouteHandlerMethod } from 'fastify';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { parseParams, type Query } from '../catalogue/params.ts';
import { entriesOn, servedPaths } from '../catalogue/paths.ts';
import { Unavailable } from '../errors.ts';
import { createAnswerCache, mountGet, sendAnswer } from '../http/answers.ts';
import type { Limited } from '../http/rate-limit.ts';
import type { Clock } from '../lib/clock.ts';

// The free routes. An answer is kept until it is old, or until its endpoint's data has a new version.

/** Free answers are summaries, so an answer may be one second old. That protects the source from bursts. */
const DEFAULT_CACHE_MS = 1000;
/** A reported fault may be over with the next block. */
const FAULT_RETRY_SECONDS = 1;

export interface FreeDeps<S> {
  readonly config: { readonly handlerTimeoutMs: number; readonly network: { readonly segment: string } };
  readonly clock: Clock;
  readonly sources: S;
  /** Documents name all of them; the free ones are mounted. */
  readonly listed: readonly Endpoint<S>[];
}

export async function freeRoutes<S>(app: FastifyInstance, deps: FreeDeps<S> & Limited): Promise<void> {
  deps.limits.free(app);
  for (const endpoint of entriesOn(deps.listed, 'free')) {
    const handler = endpoint.reportsFault ? createStatusHandler(endpoint, deps) : createHandler(endpoint, deps);
    for (const url of servedPaths(endpoint, 'free', deps.config.network.segment)) mountGet(app, url, handler);
  }
}

function createHandler<S>(endpoint: Endpoint<S>, deps: FreeDeps<S>): RouteHandlerMethod {
  const version = endpoint.version && (() => endpoint.version?.(deps.sources) ?? 0);
  const cache = createAnswerCache(deps.clock, endpoint.cacheMs ?? DEFAULT_CACHE_MS, undefined, version);
  return (request, reply) => {
    const url = request.raw.url ?? '';
    const kept = cache.byUrl(url);
    if (kept) {
      sendAnswer(request, reply, kept);
      return;
    }
    const params = parseParams(endpoint, request.query as Query);
    cache
      .answer(url, params, async () => JSON.stringify(await produce(endpoint, params, deps)))
      .then((answer) => sendAnswer(request, reply, answer))
      .catch((error) => reply.send(error));
  };
}

/** Its reply can report a fault: it is never cached, and its status says what it means. */
function createStatusHandler<S>(endpoint: Endpoint<S>, deps: FreeDeps<S>): RouteHandlerMethod {
  return async (request, reply) => {
    const data = await produce(endpoint, parseParams(endpoint, request.query as Query), deps);
    const isBad = endpoint.reportsFault?.(data) ?? false;
    if (isBad) reply.code(503).header('retry-after', String(FAULT_RETRY_SECONDS));
    return reply
      .header('cache-control', 'no-store')
      .header('content-type', 'application/json; charset=utf-8')
      .send(JSON.stringify(data));
  };
}

/** Runs the endpoint within the handler's time limit. Throws for a reply that breaks its schema: that is our bug. */
async function produce<S>(endpoint: Endpoint<S>, params: unknown, deps: FreeDeps<S>): Promise<Record<string, unknown>> {
  const signal = AbortSignal.timeout(deps.config.handlerTimeoutMs);
  const late = new Promise<never>((_resolve, reject) => {
    const tooSlow = () => reject(new Unavailable('source_timeout', 'The source did not answer in time.'));
    signal.addEventListener('abort', tooSlow, { once: true });
  });
  const reply = await Promise.race([endpoint.run(params, deps.sources, signal), late]);
  const parsed = endpoint.result.safeParse(reply);
  if (parsed.success) return parsed.data;
  throw new Error(`${endpoint.path}: the reply does not match its schema`, { cause: parsed.error });
}
