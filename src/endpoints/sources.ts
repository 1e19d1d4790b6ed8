import type { ChainClient } from '../chain/rpc/client.ts';
import type { Clock } from '../lib/clock.ts';
import type { CollectorView } from '../store/chain/collector-status.ts';
import type { ChainReads } from '../store/chain/reads.ts';
import type { SelfTestReads } from '../store/ports/selftest.ts';
import type { Dns } from '../upstream/names/doh.ts';
import type { Rdap } from '../upstream/names/rdap.ts';
import type { PackageSources } from '../upstream/packages/packages-sources.ts';
import type { FixingSource } from '../upstream/rates/fixing.ts';
import type { Web } from '../upstream/web/web.ts';
import type { Wiki } from '../upstream/wiki/wikipedia.ts';
import type { CollectedSettings } from './collected-settings.ts';

/** What endpoints may read from; each `run` names the few it needs. */
export interface Sources {
  readonly chain: ChainClient;
  readonly clock: Clock;
  /** How far the collector has come. */
  readonly collector: CollectorView;
  /** What it has read. */
  readonly reads: ChainReads;
  /** How collected data is described; see the types in collected-settings.ts. */
  readonly collected: CollectedSettings;
  /** Package registries and their advisories. */
  readonly packages: PackageSources;
  /** The domain name system. */
  readonly dns: Dns;
  /** Domain registries. */
  readonly rdap: Rdap;
  /** Central-bank reference rates. */
  readonly currency: FixingSource;
  /** Strangers' web pages. */
  readonly web: Web;
  /** Wikipedia. */
  readonly wiki: Wiki;
  /** The project's own token, when one is configured. */
  readonly projectToken: `0x${string}` | null;
  /** USYC and its price oracle on the configured chain, when there is one. */
  readonly usyc: { readonly token: `0x${string}`; readonly oracle: `0x${string}` } | null;
  /** What the service's purchases from itself have shown, whether it makes any, and under which origin. */
  readonly selfTests: { readonly results: SelfTestReads; readonly enabled: boolean; readonly origin: string };
  /** The USDC contract of the configured chain. */
  readonly usdc: `0x${string}`;
}
