import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Clock } from '../lib/clock.ts';
import type { NamedChain } from '../lib/named-chain.ts';
import { createFreeTool } from './free-tool.ts';
import { type Counters, createPricedTool } from './priced-tool.ts';
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
