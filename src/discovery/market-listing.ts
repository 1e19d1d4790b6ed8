import { z } from 'zod';
import { plainText } from '../lib/untrusted.ts';
import { registrableDomain } from '../lib/url.ts';
import type { StoredListing } from '../store/ports/market.ts';
import { hostOf } from '../upstream/guard/guard.ts';
import type { Terms } from './challenge.ts';
import { type Description, joinDescriptions } from './description.ts';
import { entrySchema, type ListedEntry, type Listing, listingSchema, TEXT_LIMITS } from './entry.ts';

export interface KnownListing extends Omit<StoredListing, 'listing'> {
  readonly listing: Listing;
}

export function readStored(stored: StoredListing): KnownListing {
  return { ...stored, listing: listingSchema.parse(JSON.parse(stored.listing)) };
}

/** For sellers that name no category, so that filters can find their listings. */
const NO_CATEGORY = 'other';

interface Found {
  readonly url: string;
  readonly method: ListedEntry['method'];
  readonly offer: Terms;
  readonly description: Description;
  readonly network: string;
}

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

function readable(path: string): string {
  try {
    return decodeURI(path);
  } catch {
    return path;
  }
}

/** Updates a listing after another call. What its description leaves empty stays as it was. */
export function relist({ entry, keywords }: Listing, found: Omit<Found, 'network'>): Listing {
  const before: Description = { ...entry, keywords };
  const description = joinDescriptions(found.description, before);
  return listingOf({ ...found, network: entry.network, description });
}

/**
 * The registered domain that a limit counts. A suffix that is shared with others (`github.io`) counts as one domain:
 * names below it are free and unlimited.
 */
export function marketDomain(url: URL): string {
  const host = hostOf(url);
  return registrableDomain(host) ?? host;
}

const unixSeconds = (of: string) => z.int().meta({ description: `Unix seconds ${of}` });
const orNull = <T extends z.ZodType>(type: T, description: string) => type.nullable().meta({ description });

/** A route of another seller: everything that a search's entry has but the score, and its hourly calls. */
export const LISTING = entrySchema.omit({ score: true }).extend({
  uptime7d: orNull(z.number(), 'Share of the last 7 days\u2019 calls that were answered well, 0 to 1'),
  calls7d: z.int().meta({ description: 'How many calls that is of' }),
  medianLatencyMs: orNull(z.int(), 'From the lookup of the host to the 402, measured from this service'),
  listedAt: unixSeconds('of the first submission'),
  pricedAt: unixSeconds('since which the price has not changed'),
  checkedAt: unixSeconds('of the last call'),
  offlineAt: orNull(z.int(), 'Unix seconds since which it is offline; null while it is online'),
  problem: orNull(z.string(), 'Why the last call failed; null when it did not'),
});

export type ListingAnswer = z.output<typeof LISTING>;

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
