import { type Header, readLatestHeader } from './block.ts';
import type { ChainClient } from './rpc/client.ts';

const underWay = new WeakMap<ChainClient, Promise<Header>>();

/**
 * The newest block. Callers that ask while a request is under way share it, so that they cost the provider one request.
 * The request goes on when a caller aborts. When it fails, it rejects for every caller that waits.
 */
export function readNewestHeader(chain: ChainClient): Promise<Header> {
  const known = underWay.get(chain);
  if (known) return known;
  const reading = readLatestHeader(chain, {}).finally(() => underWay.delete(chain));
  underWay.set(chain, reading);
  return reading;
}
