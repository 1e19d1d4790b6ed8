import type { ChainClient } from '../chain/client.ts';
import type { Clock } from '../lib/clock.ts';

/** What endpoints may read from; each `run` names the few it needs. */
export interface Sources {
  readonly chain: ChainClient;
  readonly clock: Clock;
  /** The project's own token, when one is configured. */
  readonly projectToken: `0x${string}` | null;
  /** The USDC contract of the configured chain. */
  readonly usdc: `0x${string}`;
}
