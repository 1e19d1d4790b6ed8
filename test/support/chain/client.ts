import { type ChainClientOptions, createChainClient, type OpenChainClient } from '../../../src/chain/rpc/client.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import type { Common } from '../../../src/lib/common.ts';
import { quiet } from '../quiet.ts';

/** A client on the machine's clock, with a log that nobody reads, where the test gives no other. */
export function openClient(options: ChainClientOptions & Partial<Common>): OpenChainClient {
  const { clock = systemClock, log = quiet, ...rest } = options;
  return createChainClient({ clock, log }, rest);
}
