import type { ChainClient } from '../../../src/chain/rpc/client.ts';
import type { Rank } from '../../../src/chain/rpc/wire.ts';

interface Asked {
  readonly method: string;
  readonly rank: Rank | undefined;
  readonly signal: AbortSignal | undefined;
}

/** A chain client that passes every call on and records the calls with their ranks and signals. */
export function watchedChain(chain: ChainClient) {
  const asked: Asked[] = [];
  const watched: ChainClient = {
    ...chain,
    request: (method, params, options) => {
      asked.push({ method, rank: options?.rank, signal: options?.signal });
      return chain.request(method, params, options);
    },
    batch: (calls, options) => {
      asked.push(...calls.map(({ method }) => ({ method, rank: options?.rank, signal: options?.signal })));
      return chain.batch(calls, options);
    },
  };
  return { chain: watched, asked };
}
