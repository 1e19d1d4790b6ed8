import type { ChainClient } from '../chain/rpc/client.ts';
import type { Clock } from '../lib/clock.ts';

/** How many unused requests are saved: enough for a poll and a background request at the same time, too few for a burst. */
const BURST = 2;

/** A token bucket over the HTTP requests of the collector. */
export interface Budget {
  /** Takes one request. Waits until the bucket holds one request and `reserve` more. */
  take(reserve: number, signal: AbortSignal): Promise<void>;
  /** Counts a request that was not planned (a failover). The bucket may go below zero; later callers wait until it is filled again. */
  overdraw(): void;
}

/** Allows `perSecond` requests in the long run. All of the collector's requests go through one budget. */
export function createBudget(perSecond: number, clock: Clock): Budget {
  let tokens = BURST;
  let filledMs = clock.nowMs();
  const fill = () => {
    const nowMs = clock.nowMs();
    tokens = Math.min(BURST, tokens + (Math.max(nowMs - filledMs, 0) * perSecond) / 1000);
    filledMs = nowMs;
  };
  return {
    async take(reserve, signal) {
      for (fill(); tokens < 1 + reserve; fill()) {
        await clock.sleep(Math.ceil(((1 + reserve - tokens) * 1000) / perSecond), signal);
      }
      tokens -= 1;
    },
    overdraw() {
      fill();
      tokens -= 1;
    },
  };
}

/**
 * A chain client that keeps the budget: each batch (of at most 100 calls) waits for a request; failovers are counted as they happen.
 * `reserve` is the number of requests that a loop leaves for more urgent ones.
 */
export function withinBudget(
  chain: ChainClient,
  budget: Budget,
  reserve: number,
  signal: AbortSignal,
  onRequest: () => void,
): ChainClient {
  const spend = () => {
    let taken = 1;
    return () => {
      onRequest();
      if (taken > 0) taken -= 1;
      else budget.overdraw();
    };
  };
  return {
    chainId: chain.chainId,
    publicUrl: chain.publicUrl,
    async request(method, params, options = {}) {
      await budget.take(reserve, signal);
      return chain.request(method, params, { signal, rank: 'collect', ...options, onRequest: spend() });
    },
    async batch(calls, options = {}) {
      await budget.take(reserve, signal);
      return chain.batch(calls, { signal, rank: 'collect', ...options, onRequest: spend() });
    },
    ready: chain.ready,
    requestsPerSecond: chain.requestsPerSecond,
    agreed: chain.agreed,
    each: () => Promise.reject(new Error('the collector asks one provider')),
    everywhere: () => Promise.reject(new Error('the collector only reads')),
  };
}
