import type { ChainClient } from './client.ts';

/**
 * What a request to the chain is for, the most important first: to settle what is owed and to see how it ended; to serve and to verify buyers
 * whose payment holds; to collect; to look at a payment that may hold nothing; to answer what is free.
 */
export type Rank = 'settle' | 'sale' | 'collect' | 'admit' | 'free';

/** Which part of the providers' allowance a rank leaves to those before it. */
export const RESERVE: Readonly<Record<Rank, number>> = { settle: 0, sale: 0.1, collect: 0.2, admit: 0.35, free: 0.5 };

/** How long a rank waits for an allowance that is used up, in milliseconds; then a settlement goes all the same, and what is less is refused. */
export const PATIENCE_MS: Readonly<Record<Rank, number>> = {
  settle: 3000,
  sale: 2000,
  collect: 2000,
  admit: 0,
  free: 0,
};

/** The same chain, where every request that names no rank has this one. */
export function ranked(chain: ChainClient, rank: Rank): ChainClient {
  return {
    ...chain,
    request: (method, params, options) => chain.request(method, params, { rank, ...options }),
    batch: (calls, options) => chain.batch(calls, { rank, ...options }),
  };
}
