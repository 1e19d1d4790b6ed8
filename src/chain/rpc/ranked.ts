import type { ChainClient } from './client.ts';
import type { Rank } from './rank.ts';

/** The same chain client, with this rank for each request that names none. */
export function ranked(chain: ChainClient, rank: Rank): ChainClient {
  return {
    ...chain,
    request: (method, params, options) => chain.request(method, params, { rank, ...options }),
    agreed: { ...chain.agreed, head: (options) => chain.agreed.head({ rank, ...options }) },
    each: (calls, options) => chain.each(calls, { rank, ...options }),
    batch: (calls, options) => chain.batch(calls, { rank, ...options }),
  };
}
