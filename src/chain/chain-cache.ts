import type { ChainClient } from './rpc/client.ts';

/** Values by key, each with the block at which it was read. */
export interface ChainCache<T> {
  get(key: string, block: number): T | undefined;
  set(key: string, block: number, value: T): void;
}

/**
 * One bounded cache for each client, so that two chains in one process never mix. When the cache is full, the oldest entry is dropped.
 * An entry is valid for `keepBlocks` blocks. Counting age in blocks needs no clock.
 */
export function createChainCache<T>(keepBlocks: number, maxEntries: number): (chain: ChainClient) => ChainCache<T> {
  const caches = new WeakMap<ChainClient, ChainCache<T>>();
  return (chain) => {
    const cache = caches.get(chain) ?? newCache<T>(keepBlocks, maxEntries);
    caches.set(chain, cache);
    return cache;
  };
}

function newCache<T>(keepBlocks: number, maxEntries: number): ChainCache<T> {
  const entries = new Map<string, { block: number; value: T }>();
  return {
    get(key, block) {
      const entry = entries.get(key);
      return entry !== undefined && Math.abs(block - entry.block) < keepBlocks ? entry.value : undefined;
    },
    set(key, block, value) {
      entries.delete(key);
      entries.set(key, { block, value });
      const [oldest] = entries.keys();
      if (entries.size > maxEntries && oldest !== undefined) entries.delete(oldest);
    },
  };
}
