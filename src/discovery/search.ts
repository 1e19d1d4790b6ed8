import { z } from 'zod';
import { integerParam } from '../catalogue/params.ts';
import { type Decimal, parseDecimal } from '../lib/units.ts';
import { type Entry, entrySchema, type ListedEntry, type Listing, placeOf, SOURCES, type Source } from './entry.ts';
import { buildDiscoveryIndex, type DiscoveryIndex, type IndexedDocument } from './full-text.ts';
import { type RankedPart, rank, readQuestion } from './ranking.ts';

// A search over one snapshot of all listings, which `takeSnapshot` merges, orders and indexes.

export interface Snapshot {
  /** Ordered by price, then by source. */
  readonly listings: readonly Listing[];
  readonly index: DiscoveryIndex;
  readonly counts: Readonly<Record<Source, number>>;
}

type Gathered = Readonly<Record<Source, readonly Listing[]>>;

export async function takeSnapshot(gathered: Gathered): Promise<Snapshot> {
  const merged = merge(gathered);
  const priced = merged.map((listing) => ({ listing, price: priceUnits(listing.entry.priceUsd) }));
  priced.sort((a, b) => (a.price === b.price ? byTie(a.listing, b.listing) : a.price < b.price ? -1 : 1));
  const listings = priced.map(({ listing }) => listing);
  const count = (source: Source) => listings.filter(({ entry }) => entry.source === source).length;
  const index = await buildDiscoveryIndex(listings.map(documentOf));
  return { listings, index, counts: { own: count('own'), market: count('market'), catalogue: count('catalogue') } };
}

/**
 * A better source's entry replaces the others' of its host and path. Entries of our own host are ours alone, because a
 * third party may list routes that we do not offer.
 */
function merge(gathered: Gathered): Listing[] {
  const ownHosts = new Set(gathered.own.map(({ entry }) => entry.host));
  const taken = new Set<string>();
  const merged: Listing[] = [];
  for (const source of SOURCES) {
    const places = new Set<string>();
    const seen = new Set<string>();
    for (const listing of gathered[source]) {
      const { url, method, host } = listing.entry;
      const place = placeOf(url);
      const key = `${method} ${place} ${new URL(url).search}`;
      if (taken.has(place) || seen.has(key) || (source !== 'own' && ownHosts.has(host))) continue;
      seen.add(key);
      places.add(place);
      merged.push(listing);
    }
    for (const place of places) taken.add(place);
  }
  return merged;
}

function byTie({ entry: a }: Listing, { entry: b }: Listing): number {
  const bySource = SOURCES.indexOf(a.source) - SOURCES.indexOf(b.source);
  return bySource || (a.url < b.url ? -1 : Number(a.url > b.url)) || (a.method < b.method ? -1 : 1);
}

/** Decimals of a comparable price; amounts have 6. */
const SCALE = 18;

/** In 10^-18 USD, rounded up, so that prices compare. Text that is no price is higher than every price. */
function priceUnits(priceUsd: string): bigint {
  const price = parseDecimal(priceUsd);
  return price === null ? 10n ** 60n : scaled(price);
}

function scaled({ digits, scale }: Decimal): bigint {
  if (scale <= SCALE) return digits * 10n ** BigInt(SCALE - scale);
  const divisor = 10n ** BigInt(scale - SCALE);
  return (digits + divisor - 1n) / divisor;
}

function documentOf({ entry, keywords }: Listing): IndexedDocument {
  const { name, label, description, params, url, category } = entry;
  return {
    name,
    label,
    keywords,
    description,
    params: params.map((param) => `${param.name} ${param.description}`).join(' '),
    place: `${placeOf(url)} ${category}`,
  };
}

/** Characters of a query, as Unicode code points. */
const MAX_QUERY = 200;
const MAX_DECIMAL = 30;

const text = (max: number, message: string) =>
  z
    .string()
    .trim()
    .min(1, message)
    .refine((value) => value.length <= max, message);

/** Unknown parameters are ignored. */
export const searchParams = z.object({
  q: z
    .string()
    .refine((value) => [...value].length <= MAX_QUERY, `at most ${MAX_QUERY} characters`)
    .default(''),
  maxPriceUsd: z
    .string()
    .refine((value) => value.length <= MAX_DECIMAL && parseDecimal(value) !== null, 'a decimal number such as 0.01')
    .optional(),
  limit: integerParam({ min: 1, max: 50, default: 10, description: 'How many entries at most' }),
  offset: integerParam({ min: 0, max: 100_000, default: 0, description: 'How many to leave out first' }),
  source: z.enum(SOURCES, `one of ${SOURCES.join(', ')}`).optional(),
  seller: text(253, 'an address (0x and 40 hex digits) or a host name').optional(),
  category: text(60, 'a category, at most 60 characters').optional(),
  network: text(80, 'a network such as eip155:5042').optional(),
});

export type SearchParams = z.output<typeof searchParams>;

export const searchResult = z.object({
  query: z.string(),
  network: z.string(),
  count: z.int(),
  searched: z.object({ ownRoutes: z.int(), marketListings: z.int(), catalogue: z.int() }),
  /** Unix seconds; null before the first read. */
  catalogueReadAt: z.int().nullable(),
  sources: z.record(z.enum(SOURCES), z.string()),
  results: z.array(entrySchema),
  note: z.string(),
});

export type SearchResult = z.output<typeof searchResult>;

interface Moment {
  readonly network: string;
  readonly catalogueReadAt: number | null;
  isOnline(entry: Listing['entry']): boolean;
}

export interface SearchPage {
  readonly result: SearchResult;
  readonly total: number;
}

const SOURCE_TEXTS: Readonly<Record<Source, string>> = {
  own: 'Routes of this service.',
  market:
    'Listings on the market page of this service: each is called hourly to check that it answers 402 on the chain.',
  catalogue:
    'A third-party payment catalogue, filtered to entries payable on the chain. ' +
    'They are listed by that catalogue and are not called by this service.',
};
const NOTE =
  'priceUsd is what the seller asked when last seen; refuse a seller who asks for more. ' +
  'Replace every {placeholder} in a url. For POST, params marked body go in a JSON body. ' +
  'rail gateway: the buyer needs a gateway deposit on the chain. ' +
  'Texts of market and catalogue entries are the sellers’ own.';

export function search(snapshot: Snapshot, moment: Moment, params: SearchParams): SearchPage {
  const { listings, counts } = snapshot;
  const { ranked, total } = pick(snapshot, params);
  const results = ranked.flatMap(({ id, score }): Entry[] => {
    const entry = listings[id]?.entry;
    return entry ? [{ ...entry, online: moment.isOnline(entry), score }] : [];
  });
  const result = {
    query: params.q,
    network: moment.network,
    count: results.length,
    searched: { ownRoutes: counts.own, marketListings: counts.market, catalogue: counts.catalogue },
    catalogueReadAt: moment.catalogueReadAt,
    sources: SOURCE_TEXTS,
    results,
    note: NOTE,
  };
  return { result, total };
}

/** Ties, and an empty query, have the snapshot's order. */
function pick({ listings, index }: Snapshot, { q, limit, offset, ...filters }: SearchParams): RankedPart {
  const filter = createFilter(filters);
  const passes = (id: number) => {
    const listing = listings[id];
    return listing !== undefined && filter(listing.entry);
  };
  if (q.trim() !== '') return rank(index, readQuestion(q), { limit, offset, passes });
  const all = listings.map((_listing, id) => id).filter(passes);
  return { ranked: all.slice(offset, offset + limit).map((id) => ({ id, score: 0 })), total: all.length };
}

type Filters = Pick<SearchParams, 'maxPriceUsd' | 'source' | 'seller' | 'category' | 'network'>;

/** A seller is an address or a host. Texts compare without letter case. */
function createFilter(filters: Filters): (entry: ListedEntry) => boolean {
  const { source } = filters;
  const ceiling = filters.maxPriceUsd === undefined ? null : parseDecimal(filters.maxPriceUsd);
  const seller = filters.seller?.toLowerCase();
  const category = filters.category?.toLowerCase();
  const network = filters.network?.toLowerCase();
  return (entry) =>
    (source === undefined || entry.source === source) &&
    (ceiling === null || isWithin(entry.priceUsd, ceiling)) &&
    (seller === undefined || entry.payTo.toLowerCase() === seller || entry.host.toLowerCase() === seller) &&
    (category === undefined || entry.category.toLowerCase() === category) &&
    (network === undefined || entry.networks.some((name) => name.toLowerCase() === network));
}

function isWithin(priceUsd: string, ceiling: Decimal): boolean {
  const price = parseDecimal(priceUsd);
  if (price === null) return false;
  return price.digits * 10n ** BigInt(ceiling.scale) <= ceiling.digits * 10n ** BigInt(price.scale);
}
