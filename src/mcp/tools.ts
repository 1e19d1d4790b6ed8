import type { Endpoint } from '../catalogue/endpoint.ts';
import { createAnswerCache } from '../http/answers.ts';
import type { Clock } from '../lib/clock.ts';
import type { NamedChain } from '../lib/service.ts';
import { runEndpoint } from '../payment/run-endpoint.ts';
import { listFree, outputSchema } from './listing.ts';
import { type Counters, createPricedTool } from './priced-tool.ts';
import { answered, readArguments } from './results.ts';
import { createSearchTool, type MarketSearch } from './search-tool.ts';
import type { Tool } from './tool.ts';

/** The dependencies of the tools. */
export interface ToolsDeps<S> extends Counters<S> {
  readonly catalogue: readonly Endpoint<S>[];
  /** The chain that the descriptions name. */
  readonly chain: NamedChain;
  readonly clock: Clock;
  readonly handlerTimeoutMs: number;
  /** Null when there is no search. Then the tool is absent. */
  readonly search: MarketSearch | null;
}

/** Every tool by its name: the search first, then the catalogue in its order. Throws when two entries would have one name. */
export function createTools<S>(deps: ToolsDeps<S>): ReadonlyMap<string, Tool> {
  const made = deps.catalogue.map((endpoint) =>
    endpoint.access === 'free' ? createFreeTool(endpoint, deps) : createPricedTool(endpoint, deps),
  );
  const tools = new Map<string, Tool>();
  for (const tool of deps.search ? [createSearchTool(deps.search), ...made] : made) {
    const { name } = tool;
    if (tools.has(name)) throw new Error(`two tools are called ${name}`);
    tools.set(name, tool);
  }
  return tools;
}

/** As on the free routes: a summary may be one second old. That protects the source from bursts. */
const DEFAULT_CACHE_MS = 1000;
/** Several callers share one run, so a caller that disconnects does not end it. */
const NEVER_ABORTED = new AbortController().signal;

interface FreeOptions<S> {
  readonly chain: NamedChain;
  readonly sources: S;
  readonly clock: Clock;
  readonly handlerTimeoutMs: number;
}

/**
 * Makes a tool of a free entry. Its answers are cached as long as the route's, so that the tools put no more load on a source than one more client.
 */
function createFreeTool<S>(endpoint: Endpoint<S>, { sources, chain, clock, handlerTimeoutMs }: FreeOptions<S>): Tool {
  const version = endpoint.version && (() => endpoint.version?.(sources) ?? 0);
  const cache = createAnswerCache(clock, endpoint.cacheMs ?? DEFAULT_CACHE_MS, undefined, version);
  const context = { sources, timeoutMs: handlerTimeoutMs, signal: NEVER_ABORTED };
  const produce = async (params: unknown) => (await runEndpoint(endpoint, params, context)).toString('utf8');
  const listed = listFree(endpoint, chain);
  return {
    name: listed.name,
    group: 'free',
    listedAt: () => listed,
    outputSchema: () => outputSchema(endpoint.result, false),
    async run(call) {
      const { params } = readArguments(endpoint, call.arguments);
      // A reply that can report a fault is never cached, on any transport.
      if (endpoint.reportsFault) return answered(Buffer.from(await produce(params)));
      const key = JSON.stringify(params);
      const { body } = await cache.answer(key, params, () => produce(params));
      return answered(Buffer.from(body));
    },
  };
}
