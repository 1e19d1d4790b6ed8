import type { Clock } from '../lib/clock.ts';
import type { Catalogue } from './catalogue.ts';
import { createCatalogueJob } from './catalogue-job.ts';
import type { ListedEntry, Listing } from './entry.ts';
import type { MarketListings } from './market/market-port.ts';
import { type SearchPage, type SearchResult, search } from './search.ts';
import type { SearchParams } from './search-params.ts';
import { type Snapshot, takeSnapshot } from './snapshot.ts';

interface DiscoveryOptions {
  /** Our own routes; see `createOwnListings`. */
  readonly own: readonly Listing[];
  readonly market: MarketListings;
  readonly catalogue: Catalogue;
  /** Whether this process reads the catalogue now. Otherwise it loads what another process stored. */
  readsCatalogue(): boolean;
  /** CAIP-2 of the settlement chain. */
  readonly network: string;
  /** Whether our own routes can be sold now. Asked in the background. */
  isReady(): Promise<boolean>;
  readonly clock: Clock;
  readonly log: { error(fields: object, message: string): void };
}

/** The running search. */
export interface Discovery {
  /** Answers from memory. It asks no other host. */
  search(params: SearchParams): Promise<SearchResult>;
  /** The same, with the number of all matching entries, so that a reader can leaf through them. */
  searchPage(params: SearchParams): Promise<SearchPage>;
  /** Resolves when searches see what the sources list now. Cheap when nothing has changed; never rejects. */
  refresh(): Promise<void>;
  /** Resolves when the stored copies can be searched. The hourly reads follow in the background. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** The greatest age of our own readiness in an answer. */
const READY_MS = 5000;

/** Searches our own routes, the market and the third-party catalogue together. */
export function createDiscovery(options: DiscoveryOptions): Discovery {
  const { market, catalogue, network, clock, log } = options;
  let current: { readonly snapshot: Snapshot; readonly version: string } | null = null;
  let building: Promise<void> | null = null;
  const ready = watchReadiness(options.isReady, clock);
  const versionNow = () => `${market.version()}/${catalogue.version()}`;

  /** Builds a new index while the old one serves, then replaces the old one in one step. */
  async function build(): Promise<void> {
    while (current?.version !== versionNow()) {
      const version = versionNow();
      const sources = { own: options.own, market: market.listings(), catalogue: catalogue.listings() };
      const snapshot = await takeSnapshot(sources);
      const old = current;
      current = { snapshot, version };
      old?.snapshot.index.close();
    }
  }

  function refresh(): Promise<void> {
    building ??= build()
      .catch((error: unknown) => log.error({ err: error }, 'the search index cannot be built; the old one stays'))
      .finally(() => {
        building = null;
      });
    return building;
  }

  const isOnline = ({ source, url }: ListedEntry) => {
    if (source === 'own') return ready.value();
    return source === 'market' ? market.isOnline(url) : true;
  };
  const job = createCatalogueJob({ catalogue, reads: options.readsCatalogue, onChange: refresh, clock });

  async function searchPage(params: SearchParams): Promise<SearchPage> {
    ready.look();
    // Rebuilds after a change without waiting, so that a search uses the old index meanwhile. Only searches before the first index wait.
    const upToDate = current?.version === versionNow() ? null : refresh();
    if (current === null) await upToDate;
    if (current === null) throw new Error('there is no search index');
    return search(current.snapshot, { network, catalogueReadAt: readAt(catalogue), isOnline }, params);
  }

  return {
    refresh,
    searchPage,
    search: async (params) => (await searchPage(params)).result,
    async start() {
      await Promise.all([catalogue.load(), ready.look()]);
      await refresh();
      job.start();
    },
    async stop() {
      await job.stop();
      await building;
      current?.snapshot.index.close();
      current = null;
    },
  };
}

/** When the catalogue was last read, in Unix seconds; null before. */
function readAt({ readAtMs }: Catalogue): number | null {
  const ms = readAtMs();
  return ms === null ? null : Math.floor(ms / 1000);
}

/** Keeps the last known readiness. When a search asks for it and it is old, it is read again in the background. */
function watchReadiness(isReady: () => Promise<boolean>, clock: Clock) {
  let seen = false;
  let lookedAtMs = Number.NEGATIVE_INFINITY;
  let looking: Promise<void> = Promise.resolve();
  return {
    value: () => seen,
    look(): Promise<void> {
      if (clock.nowMs() - lookedAtMs < READY_MS) return looking;
      lookedAtMs = clock.nowMs();
      looking = isReady().then(
        (ready) => {
          seen = ready;
        },
        () => {
          seen = false;
        },
      );
      return looking;
    },
  };
}
