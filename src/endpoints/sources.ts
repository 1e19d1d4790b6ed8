import type { ChainClient } from '../chain/rpc/client.ts';
import type { CollectorView } from '../collector/store/facts.ts';
import type { ChainReads } from '../collector/store/reads.ts';
import type { Clock } from '../lib/clock.ts';
import type { NamedChain } from '../lib/service.ts';
import type { SelfTestReads } from '../store/ports/stores.ts';
import type { Web } from '../upstream/web/web.ts';

/** Each endpoint's `run` takes the members that it needs. Sources of other hosts stand in `catalogue/catalogue.ts`. */
export interface Sources {
  readonly chain: ChainClient;
  readonly chainName: NamedChain;
  readonly clock: Clock;
  readonly collector: CollectorView;
  readonly reads: ChainReads;
  readonly collected: CollectedSettings;
  readonly web: Web;
  /** Null when none is configured. */
  readonly projectToken: `0x${string}` | null;
  /** USYC and its price oracle; null when the chain has none. */
  readonly usyc: { readonly token: `0x${string}`; readonly oracle: `0x${string}` } | null;
  /** `enabled` and `origin`: whether the service buys from itself, and where. */
  readonly selfTests: { readonly results: SelfTestReads; readonly enabled: boolean; readonly origin: string };
  /** Without a slash at its end; null when none is configured. */
  readonly explorerUrl: string | null;
  readonly usdc: `0x${string}`;
}

export interface WatchedToken {
  readonly symbol: string;
  /** Lower case. */
  readonly address: `0x${string}`;
}

export interface CollectedSettings {
  readonly watched: readonly WatchedToken[];
  /** Scheme and host only, because a path may hold an API key. */
  readonly endpoints: readonly { readonly name: string; readonly url: string }[];
  /** The limits within which `/v1/health` reports `ok`. */
  readonly health: { readonly stalledSeconds: number; readonly lagBlocks: number; readonly lagSeconds: number };
  /** Null when the operator did not configure it. */
  readonly floorWei: bigint | null;
  readonly hasDistributor: boolean;
}
