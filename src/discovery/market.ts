import { AppError, BadParameter, TooMany, Unavailable } from '../errors.ts';
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/common.ts';
import { countClient, createMinuteWindows, MAX_CLIENTS, openClientWindows } from '../lib/limits/count.ts';
import { createLoop } from '../lib/tasks.ts';
import type { MarketChanges, MarketStore, StoredListing } from '../store/ports/market.ts';
import { createHostLimit, createLimiter, LimiterFull } from '../upstream/client/limiter.ts';
import { requirePublicUrl } from '../upstream/guard/guard.ts';
import { type Description, describeOpenApi, describeWellKnown, isComplete, joinDescriptions } from './description.ts';
import type { MarketListings } from './discovery.ts';
import { type Entry, type Listing, placeOf, readListedUrl } from './entry.ts';
import { type KnownListing, listingOf, marketDomain, readStored, relist } from './market-listing.ts';
import type { Caller } from './market-probe.ts';
import { afterAnswer } from './market-schedule.ts';

// The market: other sellers' routes, submitted by anyone and listed when they can be paid here. A submission is called
// without a payment; its 402 and its origin's documents describe it. Searches read a copy in memory, which takes every
// process's changes from the store.

export interface MarketLimits {
  readonly probeIntervalMs: number;
  /** Submissions of one client per hour; 0 is off. */
  readonly submitsPerHour: number;
  readonly maxListings: number;
  readonly maxPerHost: number;
}

export interface Market extends MarketCopy {
  /**
   * Calls a URL and lists it, or updates it. Throws a Caller's errors, BadParameter for text that is no URL, 409
   * `host_full`, 429 `submit_limited` or `host_limited`, 503 `market_full` or `market_busy`.
   */
  submit(
    url: unknown,
    client: string,
    signal?: AbortSignal,
  ): Promise<{ readonly isNew: boolean; readonly listed: KnownListing }>;
  /** Returns when the copy equals the store. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

interface MarketCopy extends MarketListings {
  /** Takes every process's changes from the store. */
  refresh(): Promise<void>;
  revision(): number;
  /** Online ones first, then the newest. */
  all(): readonly KnownListing[];
}

interface MarketOptions {
  readonly store: MarketStore;
  readonly caller: Caller;
  readonly network: string;
  readonly limits: MarketLimits;
  readonly clock: Clock;
  readonly log: Pick<Log, 'info' | 'error'>;
}

/** The greatest age of the copy after another process wrote. */
const REFRESH_MS = 5000;
/** Requests per minute that all submissions together send to one host. */
const HOST_PER_MINUTE = 20;
/** Submissions at the same time, those that wait, and how long. */
const MAX_RUNNING = 8;
const MAX_WAITING = 32;
const WAIT_MS = 5000;

export function createMarket(options: MarketOptions): Market {
  const { store, limits, clock, log } = options;
  const copy = createMarketCopy(store, (place, error) => log.error({ place, err: error }, 'a listing cannot be read'));
  const limitClient = createSubmitLimit(limits.submitsPerHour, clock);
  const limiter = createLimiter(MAX_RUNNING, MAX_WAITING, WAIT_MS);
  const submitNow = createSubmission(options);

  async function step(): Promise<number> {
    await copy.refresh().catch((err) => log.error({ err }, 'the market cannot be read'));
    return REFRESH_MS;
  }

  const loop = createLoop(clock, step, REFRESH_MS);

  return {
    ...copy,
    async submit(value, client, signal = loop.signal) {
      const text = requireAddress(value);
      limitClient(client);
      const { isNew, place } = await limiter
        .run(signal, () => submitNow(text, signal))
        .catch((error) => {
          throw error instanceof LimiterFull
            ? new Unavailable('market_busy', 'Many addresses are being looked at; try again shortly.')
            : error;
        });
      await copy.refresh();
      const stored = await store.find(place);
      if (stored === null) throw new Error('a listing was lost while it was listed');
      if (isNew) log.info({ place }, 'a route was listed');
      return { isNew, listed: readStored(stored) };
    },
    async start() {
      await copy.refresh();
      loop.start();
    },
    stop: () => loop.stop(new Unavailable('stopping', 'The service stops.')),
  };
}

/** The URL as it will be listed. Throws BadParameter, and sends no request. */
function requireAddress(value: unknown): string {
  const parsed = typeof value === 'string' ? URL.parse(value.trim()) : null;
  if (typeof value !== 'string' || parsed === null)
    throw new BadParameter([{ path: 'url', message: 'the URL of a priced route' }]);
  requirePublicUrl(parsed);
  return addressOf(value.trim());
}

function addressOf(text: string): string {
  const listed = readListedUrl(text);
  if (listed !== null) return listed.url;
  const message =
    'a URL of at most 1000 characters with a host name, and nothing in it that must be escaped but {placeholders}';
  throw new BadParameter([{ path: 'url', message }]);
}

const HOUR_MS = 3_600_000;

/**
 * The hour begins with a client's first submission. Throws TooMany above the limit, four times as high for an IPv6 /48:
 * each submission makes us call another operator's server several times.
 */
function createSubmitLimit(perHour: number, clock: Clock): (client: string) => void {
  const windows = openClientWindows(() => createMinuteWindows(clock, MAX_CLIENTS, HOUR_MS), 'submissions');
  return (client) => {
    if (perHour === 0) return;
    const { of, limit, left, resetSeconds } = countClient(perHour, windows, client);
    if (left >= 0) return;
    const whose = of === 'site' ? 'One /48 network' : 'One client';
    throw new TooMany('submit_limited', `${whose} may submit ${limit} addresses an hour.`, resetSeconds);
  };
}

function createSubmission({ store, caller, network, limits, clock }: MarketOptions) {
  const limitHost = createHostLimit(HOST_PER_MINUTE, clock);

  /** An online place is called under its listed URL, so that no third party can replace its query. */
  async function find(text: string, known: StoredListing | null, signal: AbortSignal) {
    const at = async (address: string) => {
      const seen = await caller.find(new URL(address), { limitHost, signal });
      const isHere = seen.url.href === new URL(address).href;
      return { seen, url: isHere ? address : addressOf(seen.url.href) };
    };
    const listed = known && readStored(known).listing.entry.url;
    if (listed === null || listed === text) return at(text);
    return known?.offlineAt === null ? at(listed) : at(listed).catch(() => at(text));
  }

  return async (text: string, signal: AbortSignal): Promise<{ isNew: boolean; place: string }> => {
    const asked = await store.find(placeOf(text));
    const { seen, url } = await find(text, asked, signal);
    const place = placeOf(url);
    const known = asked?.place === place ? asked : await store.find(place);
    const before = known && readStored(known).listing;
    const origin = { url: seen.url, method: seen.description.method ?? seen.method };
    const description = await completeDescription(seen.description, origin, caller, { limitHost, signal });
    const found = { ...seen, url: before && known !== asked ? before.entry.url : url, description };
    const listing = before ? relist(before, found) : listingOf({ ...found, network });
    const nowMs = clock.nowMs();
    const isSamePrice = before?.entry.priceUsd === listing.entry.priceUsd;
    const row = {
      place,
      domain: marketDomain(seen.url),
      listing: JSON.stringify(listing),
      method: seen.method,
      pricedAt: known && isSamePrice ? known.pricedAt : nowMs,
      checkedAt: nowMs,
      reason: null,
      ...afterAnswer(place, nowMs, limits.probeIntervalMs),
    };
    const outcome = await store.put(row, seen.latencyMs, { total: limits.maxListings, perDomain: limits.maxPerHost });
    if (outcome === 'market_full') throw MARKET_FULL;
    if (outcome === 'domain_full') throw HOST_FULL;
    return { isNew: outcome === 'listed', place };
  };
}

const HOST_FULL = new AppError(
  409,
  'host_full',
  'The registered domain of this host has as many listings as one may have; all names below it count, ' +
    'also where several owners share it.',
);
const MARKET_FULL = new Unavailable('market_full', 'The market has as many listings as it accepts.', 3600);

const MAX_OPENAPI_BYTES = 2 * 1024 * 1024;
const MAX_WELL_KNOWN_BYTES = 512 * 1024;

/** Reads the origin's OpenAPI document, then /.well-known/x402. An unusable document counts as a silent one. */
async function completeDescription(
  challenged: Description,
  { url, method }: { url: URL; method: Entry['method'] },
  caller: Pick<Caller, 'readJson'>,
  asking: Parameters<Caller['readJson']>[2],
): Promise<Description> {
  // Always read, because the protocol has no name for a route.
  const openApi = await caller.readJson(new URL('/openapi.json', url), MAX_OPENAPI_BYTES, asking);
  const described = joinDescriptions(challenged, describeOpenApi(openApi, url, method));
  if (isComplete(described)) return described;
  const wellKnown = await caller.readJson(new URL('/.well-known/x402', url), MAX_WELL_KNOWN_BYTES, asking);
  return joinDescriptions(described, describeWellKnown(wellKnown, url, method));
}

interface Held {
  readonly text: string;
  readonly known: KnownListing;
}

/** A row that cannot be parsed is left out and passed to `onUnreadable`. */
function createMarketCopy(
  store: Pick<MarketStore, 'changesSince'>,
  onUnreadable: (place: string, error: unknown) => void,
): MarketCopy {
  let held = new Map<string, Held>();
  let sorted: readonly KnownListing[] = [];
  let listed: readonly Listing[] = [];
  let online = new Set<string>();
  let revision = 0;
  let version = 0;

  function parseOrReport(row: StoredListing): Held | undefined {
    try {
      return { text: row.listing, known: readStored(row) };
    } catch (error) {
      onUnreadable(row.place, error);
      return undefined;
    }
  }

  function merge({ places, changed }: MarketChanges): Map<string, Held> {
    const rows = new Map(changed.map((row) => [row.place, row]));
    const next = new Map<string, Held>();
    for (const place of places) {
      const row = rows.get(place);
      const one = row ? parseOrReport(row) : held.get(place);
      if (one) next.set(place, one);
    }
    return next;
  }

  return {
    async refresh() {
      const changes = await store.changesSince(revision);
      // A concurrent refresh may have read a newer one.
      if (changes === null || changes.revision < revision) return;
      const before = held;
      held = merge(changes);
      revision = changes.revision;
      sorted = [...held.values()].map(({ known }) => known).sort(byStanding);
      online = new Set(sorted.flatMap(({ listing, offlineAt }) => (offlineAt === null ? [listing.entry.url] : [])));
      if (saysTheSame(before, held)) return;
      listed = sorted.map(({ listing }) => listing);
      version += 1;
    },
    revision: () => revision,
    all: () => sorted,
    version: () => version,
    listings: () => listed,
    isOnline: (url) => online.has(url),
  };
}

function saysTheSame(before: ReadonlyMap<string, Held>, now: ReadonlyMap<string, Held>): boolean {
  return before.size === now.size && [...now].every(([place, { text }]) => before.get(place)?.text === text);
}

function byStanding(a: KnownListing, b: KnownListing): number {
  const away = Number(a.offlineAt !== null) - Number(b.offlineAt !== null);
  return away || b.listedAt - a.listedAt || (a.place < b.place ? -1 : 1);
}
