import { createHash } from 'node:crypto';
import { plainText } from '../lib/untrusted.ts';
import { registrableDomain } from '../lib/url.ts';
import type { MarketChanges, MarketStore, StoredListing } from '../store/ports/market.ts';
import { hostOf } from '../upstream/guard/guard.ts';
import type { Terms } from './challenge.ts';
import { type Description, joinDescriptions } from './description.ts';
import type { MarketListings } from './discovery.ts';
import { type Entry, type ListedEntry, type Listing, listingSchema, TEXT_LIMITS } from './entry.ts';

interface Held {
  readonly text: string;
  readonly known: KnownListing;
}

/** A stored listing, parsed. */
export interface KnownListing extends Omit<StoredListing, 'listing'> {
  readonly listing: Listing;
}

/** The market in memory. */
export interface MarketCopy extends MarketListings {
  /** Reads the changes in the store, whichever process wrote them. Cheap while nothing has changed. */
  refresh(): Promise<void>;
  /** The store's revision of this copy. It changes with every write. */
  revision(): number;
  /** All listings: those that are online first, then the newest. */
  all(): readonly KnownListing[];
}

/** Parses a stored listing. A row with another form is a bug, and throws. */
export function readStored(stored: StoredListing): KnownListing {
  return { ...stored, listing: listingSchema.parse(JSON.parse(stored.listing)) };
}

/** Makes a copy that is as new as its last refresh. A listing whose row cannot be parsed is left out and passed to `onUnreadable`. */
export function createMarketCopy(
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
      // A concurrent refresh may have read a newer revision already.
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

/** The category of a seller that names none, so that filters can find its listings. */
const NO_CATEGORY = 'other';

interface Found {
  /** The listed URL, with readable placeholders. */
  readonly url: string;
  /** The method that was answered with 402. */
  readonly method: ListedEntry['method'];
  readonly offer: Terms;
  readonly description: Description;
  readonly network: string;
}

/** Makes a listing from the terms and descriptions that the seller returned. */
export function listingOf({ url, method, offer, description, network }: Found): Listing {
  const { origin, host, pathname } = new URL(url);
  const name = description.name || plainText(readable(pathname).replace(/^\/+|\/+$/g, ''), TEXT_LIMITS.name) || host;
  const called = description.method ?? method;
  const { plainPriceUsd, ...asked } = offer;
  return {
    entry: {
      url,
      method: called,
      name,
      label: description.label || plainText(name, TEXT_LIMITS.label),
      description: description.description,
      params: description.params,
      host,
      network,
      ...asked,
      direct: plainPriceUsd === null ? null : { url, priceUsd: plainPriceUsd },
      body: called === 'POST' ? description.body : null,
      source: 'market',
      category: (description.category || NO_CATEGORY).toLowerCase(),
      site: origin,
    },
    keywords: description.keywords,
  };
}

/** Updates a listing after another call. Terms are those of this call. A description that this call left empty keeps its old value. */
export function relist({ entry, keywords }: Listing, found: Omit<Found, 'network'>): Listing {
  const before: Description = { ...entry, keywords };
  const description = joinDescriptions(found.description, before);
  return listingOf({ ...found, network: entry.network, description });
}

function readable(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

/** A listing as the API returns it: a search's entry, and the results of its calls. Times in Unix seconds. */
export interface ListingAnswer extends Omit<Entry, 'score'> {
  /** Share of the last 7 days' calls that were answered correctly, from 0 to 1. */
  readonly uptime7d: number | null;
  /** The number of calls in that share. */
  readonly calls7d: number;
  /** Of the answered calls, from the DNS lookup to the 402's headers, measured from this host. */
  readonly medianLatencyMs: number | null;
  readonly listedAt: number;
  /** The time since which the price has not changed. */
  readonly pricedAt: number;
  readonly checkedAt: number;
  /** Null while the listing is online. A listing that is offline for 7 days is dropped. */
  readonly offlineAt: number | null;
  /** Why the last call failed, as a refusal's code. Null when it succeeded. */
  readonly problem: string | null;
}

/** Converts a listing to the form that the API returns. */
export function describeListing(known: KnownListing): ListingAnswer {
  const { listing, calls, answered, medianLatencyMs, offlineAt, reason } = known;
  return {
    ...listing.entry,
    online: offlineAt === null,
    uptime7d: calls === 0 ? null : Math.round((answered / calls) * 10_000) / 10_000,
    calls7d: calls,
    medianLatencyMs,
    listedAt: seconds(known.listedAt),
    pricedAt: seconds(known.pricedAt),
    checkedAt: seconds(known.checkedAt),
    offlineAt: offlineAt === null ? null : seconds(offlineAt),
    problem: reason,
  };
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}

/**
 * The registered domain under which a listing is counted and called.
 * A suffix that its owner shares with others (`github.io`, `vercel.app`) counts as one domain. Names below it are free and unlimited, so they must
 * not raise the limit on listings.
 */
export function marketDomain(url: URL): string {
  const host = hostOf(url);
  return registrableDomain(host) ?? host;
}

/** The state of a listing between two calls. Times in Unix milliseconds. */
export interface Standing {
  /** Failed calls in a row. */
  readonly failures: number;
  /** The time since which it is offline; null while it is online. */
  readonly offlineAt: number | null;
  /** The time of the next call. */
  readonly dueAt: number;
}

/** One or two failures may be a short disturbance. Three in a row count as an outage. */
const OFFLINE_AFTER = 3;
/** A listing that is offline for a week is dropped. */
const DROP_AFTER_MS = 7 * 86_400_000;
/** The longest pause between calls to an offline listing, in intervals. With hourly calls it is called four times a day, at different hours. */
const MAX_PAUSE = 6;

/**
 * The listing's next slot after a moment. Its place fixes one slot per interval.
 * So calls are spread evenly, however listings came in, and stay so over restarts.
 */
export function nextSlot(place: string, afterMs: number, intervalMs: number): number {
  const offsetMs = createHash('sha256').update(place).digest().readUInt32BE(0) % intervalMs;
  return afterMs + intervalMs - ((((afterMs - offsetMs) % intervalMs) + intervalMs) % intervalMs);
}

/** The state after a correctly answered call. */
export function afterAnswer(place: string, nowMs: number, intervalMs: number): Standing {
  return { failures: 0, offlineAt: null, dueAt: nextSlot(place, nowMs, intervalMs) };
}

/**
 * The state after a failed call. The listing is offline from the third failure in a row, and is then called less and less often.
 * Null when the listing is to be dropped. Only a failed call drops it, because time without calls proves nothing.
 */
export function afterFailure(place: string, before: Standing, nowMs: number, intervalMs: number): Standing | null {
  const failures = before.failures + 1;
  const offlineAt = before.offlineAt ?? (failures >= OFFLINE_AFTER ? nowMs : null);
  if (offlineAt !== null && nowMs - offlineAt >= DROP_AFTER_MS) return null;
  const pause = Math.min(2 ** Math.max(0, failures - OFFLINE_AFTER), MAX_PAUSE);
  return { failures, offlineAt, dueAt: nextSlot(place, nowMs + (pause - 1) * intervalMs, intervalMs) };
}
