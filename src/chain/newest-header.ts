import { type Header, readLatestHeader } from './block.ts';
import type { ChainClient } from './rpc/client.ts';

const underWay = new WeakMap<ChainClient, Promise<Header>>();

/**
 * The newest block, by one request for all who ask while it is under way: answers of the same moment need not cost the chain one each.
 * The request is nobody's own: it goes on when a caller leaves, and when it fails, it fails for all who wait for it.
 */
export function readNewestHeader(chain: ChainClient): Promise<Header> {
  const known = underWay.get(chain);
  if (known) return known;
  const reading = readLatestHeader(chain, {}).finally(() => underWay.delete(chain));
  underWay.set(chain, reading);
  return reading;
}
