import type { ChainClient } from '../chain/rpc/client.ts';
import type { CollectorView } from '../collector/store/facts.ts';
import type { ChainReads } from '../collector/store/reads.ts';
import type { Clock } from '../lib/clock.ts';
import type { NamedChain } from '../lib/service.ts';
import type { SelfTestReads } from '../store/ports/stores.ts';
import type { Dns } from '../upstream/domains/dns.ts';
import type { Rdap } from '../upstream/domains/rdap.ts';
import type { FindDependents } from '../upstream/packages/dependents.ts';
import type { Npm } from '../upstream/packages/npm.ts';
import type { Osv } from '../upstream/packages/osv.ts';
import type { FindPypiProvenance, Pypi } from '../upstream/packages/pypi.ts';
import type { FindListing } from '../upstream/packages/registries.ts';
import type { FixingSource } from '../upstream/rates/fixing.ts';
import type { Web } from '../upstream/web/web.ts';
import type { Wiki } from '../upstream/wikipedia.ts';

/** Everything that endpoints may read from. Each `run` takes the members that it needs. */
export interface Sources {
  readonly chain: ChainClient;
  /** The configured chain's name for people. */
  readonly chainName: NamedChain;
  readonly clock: Clock;
  /** The collector's position. */
  readonly collector: CollectorView;
  /** The collected data. */
  readonly reads: ChainReads;
  /** How collected data are described. */
  readonly collected: CollectedSettings;
  /** Package registries and their advisories. */
  readonly packages: PackageSources;
  /** The domain name system. */
  readonly dns: Dns;
  /** Domain registries. */
  readonly rdap: Rdap;
  /** Central-bank reference rates. */
  readonly currency: FixingSource;
  /** Third parties' web pages. */
  readonly web: Web;
  /** Wikipedia. */
  readonly wiki: Wiki;
  /** The project's own token; null when none is configured. */
  readonly projectToken: `0x${string}` | null;
  /** USYC and its price oracle on the configured chain; null when there is none. */
  readonly usyc: { readonly token: `0x${string}`; readonly oracle: `0x${string}` } | null;
  /** The results of the service's purchases from itself, whether it makes any, and under which origin. */
  readonly selfTests: { readonly results: SelfTestReads; readonly enabled: boolean; readonly origin: string };
  /** The chain's explorer, without a slash at its end; null when none is configured. */
  readonly explorerUrl: string | null;
  /** The USDC contract of the configured chain. */
  readonly usdc: `0x${string}`;
}

/** A token whose trades are collected. */
export interface WatchedToken {
  readonly symbol: string;
  /** Lower case. */
  readonly address: `0x${string}`;
}

interface ShownEndpoint {
  readonly name: string;
  /** Scheme and host only, because a path may hold an API key. */
  readonly url: string;
}

/** The limits within which `/v1/health` reports `ok`. */
interface HealthLimits {
  readonly stalledSeconds: number;
  readonly lagBlocks: number;
  readonly lagSeconds: number;
}

/** The part of the configuration that endpoints over collected data need. */
export interface CollectedSettings {
  readonly watched: readonly WatchedToken[];
  readonly endpoints: readonly ShownEndpoint[];
  readonly health: HealthLimits;
  /** The chain's lowest base fee; null when the operator did not configure it. */
  readonly floorWei: bigint | null;
  /** True when the collector looks for a distributor's payouts. */
  readonly hasDistributor: boolean;
}

export interface PackageSources {
  readonly npm: Npm;
  /** Downloads over the last seven counted days; null when npm counts none. */
  readonly npmDownloads: (name: string, signal?: AbortSignal) => Promise<number | null>;
  readonly pypi: Pypi;
  /** Who published a file, as PyPI attests. */
  readonly pypiProvenance: FindPypiProvenance;
  /** How many packages depend on a version. */
  readonly dependents: FindDependents;
  readonly osv: Osv;
  /** Whether a registry lists a package, in any of the eight ecosystems. */
  readonly findListing: FindListing;
}
