import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/common.ts';
import { createLoop, shareRun } from '../lib/tasks.ts';
import type { ListedEntry, Listing } from './entry.ts';
import type { Catalogue } from './foreign-catalogue.ts';
import {
  type SearchPage,
  type SearchParams,
  type SearchResult,
  type Snapshot,
  search,
  takeSnapshot,
} from './search.ts';

// The running search over our own routes, the market and the third-party catalogue, in memory. A change builds a new
// index while the old one serves. `createCatalogueJob` reads the catalogue about once an hour, or loads a stored copy.

interface DiscoveryOptions {
  readonly own: readonly Listing[];
  readonly market: MarketListings;
  readonly catalogue: Catalogue;
  /** Otherwise this process loads what another one stored. */
  readsCatalogue(): boolean;
  readonly network: string;
  isReady(): Promise<boolean>;
  readonly clock: Clock;
  readonly log: Pick<Log, 'error'>;
}

export interface MarketListings {
  /** Changes when a listing comes, goes or changes its text, but not when it goes offline. */
  version(): number;
  listings(): readonly Listing[];
  isOnline(url: string): boolean;
}

export interface Discovery {
  search(params: SearchParams): Promise<SearchResult>;
  /** It also has the number of all matching entries. */
  searchPage(params: SearchParams): Promise<SearchPage>;
  /** Resolves when searches see what the sources list now. Never rejects. */
  refresh(): Promise<void>;
  /** Resolves when the stored copies can be searched. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** How old our own readiness in an answer may be. */
const READY_MS = 5000;

export function createDiscovery(options: DiscoveryOptions): Discovery {
  const { market, catalogue, network, clock, log } = options;
  let current: { readonly snapshot: Snapshot; readonly version: string } | null = null;
  const ready = watchReadiness(options.isReady, clock);
  const versionNow = () => `${market.version()}/${catalogue.version()}`;

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

  const refresh = shareRun(() =>
    build().catch((error: unknown) => log.error({ err: error }, 'the search index cannot be built; the old one stays')),
  );

  const isOnline = ({ source, url }: ListedEntry) => {
    if (source === 'own') return ready.value();
    return source === 'market' ? market.isOnline(url) : true;
  };
  const job = createCatalogueJob(clock, catalogue, options.readsCatalogue, refresh);

  async function searchPage(params: SearchParams): Promise<SearchPage> {
    ready.look();
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
      await refresh.idle();
      current?.snapshot.index.close();
      current = null;
    },
  };
}

/** When the last known readiness is old, a look reads it again in the background. */
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

function readAt({ readAtMs }: Catalogue): number | null {
  const ms = readAtMs();
  return ms === null ? null : Math.floor(ms / 1000);
}

const HOUR_MS = 3_600_000;
/** How often the job looks for a newer stored copy and for a due read. */
const TICK_MS = 30_000;
/** A fresh process waits so long, so that chain providers and buyers come first. */
const FIRST_MS = 5000;
/** The wait after a failed read. It doubles with each further one, up to an hour. */
const RETRY_MS = 300_000;
/** Reads vary by this share of the interval, so that they leave the full hour, when most timers fire. */
const JITTER = 0.05;

/** The hour counts from the stored copy, so that restarts do not ask more often. `onChange` must not reject. */
export function createCatalogueJob(
  clock: Clock,
  catalogue: Catalogue,
  reads: () => boolean,
  onChange: () => Promise<void>,
  random: () => number = Math.random,
) {
  let failures = 0;
  let due: number | null = null;

  const spread = (ms: number) => ms * (1 + JITTER * (2 * random() - 1));
  const waitAfter = (readWell: boolean): number => {
    failures = readWell ? 0 : failures + 1;
    return spread(readWell ? HOUR_MS : Math.min(RETRY_MS * 2 ** (failures - 1), HOUR_MS));
  };

  function firstDue(): number {
    const readAt = catalogue.readAtMs();
    return Math.max(clock.nowMs() + FIRST_MS, readAt === null ? 0 : readAt + spread(HOUR_MS));
  }

  async function step(signal: AbortSignal): Promise<number> {
    const before = catalogue.version();
    if (!reads()) {
      due = null;
      await catalogue.load();
    } else {
      due ??= firstDue();
      if (clock.nowMs() >= due) due = clock.nowMs() + waitAfter(await catalogue.read(signal));
    }
    if (catalogue.version() !== before) await onChange();
    return due === null ? TICK_MS : Math.min(due - clock.nowMs(), TICK_MS);
  }

  const loop = createLoop(clock, step);
  return {
    start: loop.start,
    /** Aborts the current read. Safe at any time and more than once. */
    stop: () => loop.stop(new Error('the catalogue is no longer read')),
  };
}

export const NO_LISTINGS: MarketListings = { version: () => 0, listings: () => [], isOnline: () => false };
