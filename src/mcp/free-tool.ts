import type { Endpoint } from '../catalogue/endpoint.ts';
import { createAnswerCache } from '../http/cache.ts';
import type { Clock } from '../lib/clock.ts';
import { runEndpoint } from '../payment/run-endpoint.ts';
import { readArguments } from './arguments.ts';
import { listFree } from './listing.ts';
import { answered } from './results.ts';
import type { Tool } from './tool.ts';

/** As on the routes: free answers are summaries, and one second spares the source a burst. */
const DEFAULT_CACHE_MS = 1000;
/** A run is shared by whoever asks the same meanwhile, so nobody's leaving ends it. */
const NOBODY_LEAVES = new AbortController().signal;

interface FreeOptions<S> {
  readonly sources: S;
  readonly clock: Clock;
  readonly handlerTimeoutMs: number;
}

/** A free entry as a tool: it just answers. Answers are kept as long as the route's, so that tools load no source more than a second client would. */
export function createFreeTool<S>(endpoint: Endpoint<S>, { sources, clock, handlerTimeoutMs }: FreeOptions<S>): Tool {
  const version = endpoint.version && (() => endpoint.version?.(sources) ?? 0);
  const cache = createAnswerCache(clock, endpoint.cacheMs ?? DEFAULT_CACHE_MS, undefined, version);
  const context = { sources, timeoutMs: handlerTimeoutMs, signal: NOBODY_LEAVES };
  const produce = async (params: unknown) => (await runEndpoint(endpoint, params, context)).toString('utf8');
  return {
    listed: listFree(endpoint),
    group: 'free',
    async run(call) {
      const { params } = readArguments(endpoint, call.arguments);
      // What may be bad news is of this moment, on every transport.
      if (endpoint.isBadNews) return answered(Buffer.from(await produce(params)));
      const key = JSON.stringify(params);
      const { body } = await cache.answer(key, params, () => produce(params));
      return answered(Buffer.from(body));
    },
  };
}
