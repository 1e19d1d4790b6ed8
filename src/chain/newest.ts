import { createSingleFlight } from '../lib/tasks.ts';
import { type Header, readBlockNumber, readLatestHeader } from './block.ts';
import type { ChainClient } from './rpc/client.ts';

const headers = createSingleFlight<Header, ChainClient>();
const numbers = createSingleFlight<number, ChainClient>();

/**
 * The newest block, by one request of a chain client for all callers that ask while it is under way: answers of the same moment need not cost the
 * chain one each. The request belongs to all its callers. It goes on when one caller leaves, and its failure reaches all of them.
 */
export function readNewestHeader(chain: ChainClient): Promise<Header> {
  return headers(chain, undefined, () => readLatestHeader(chain, {}));
}

/** The number of the newest block, at which the reads of one answer are then pinned; shared in the same way. */
export function readNewestNumber(chain: ChainClient): Promise<number> {
  return numbers(chain, undefined, () => readBlockNumber(chain, {}));
}
