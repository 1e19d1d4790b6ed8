import { type Header, readBlockNumber, readLatestHeader } from './block.ts';
import type { ChainClient } from './rpc/client.ts';

/**
 * The newest block, by one request for all who ask while it is under way: answers of the same moment need not cost the chain one each.
 * The request belongs to all its callers. It goes on when one caller leaves, and its failure reaches all of them.
 */
export const readNewestHeader: (chain: ChainClient) => Promise<Header> = shareUnderWay((chain) =>
  readLatestHeader(chain, {}),
);

/** The number of the newest block, at which the reads of one answer are then pinned; shared in the same way. */
export const readNewestNumber: (chain: ChainClient) => Promise<number> = shareUnderWay((chain) =>
  readBlockNumber(chain, {}),
);

function shareUnderWay<T>(read: (chain: ChainClient) => Promise<T>): (chain: ChainClient) => Promise<T> {
  const underWay = new WeakMap<ChainClient, Promise<T>>();
  return (chain) => {
    const known = underWay.get(chain);
    if (known) return known;
    const reading = read(chain).finally(() => underWay.delete(chain));
    underWay.set(chain, reading);
    return reading;
  };
}
