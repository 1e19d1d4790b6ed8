import type { Entry, Listing, Source } from './entry.ts';
import { createFilter } from './filters.ts';
import { readQuestion } from './question.ts';
import { type RankedPart, rank } from './ranking.ts';
import type { SearchParams } from './search-params.ts';
import type { Snapshot } from './snapshot.ts';

/** A search's answer, in the shape that `GET /v1/market/search` promises. */
export interface SearchResult {
  readonly query: string;
  /** CAIP-2 of the settlement chain. */
  readonly network: string;
  readonly count: number;
  /** How many entries of each source were searched. */
  readonly searched: { readonly ownRoutes: number; readonly marketListings: number; readonly catalogue: number };
  /** Unix seconds of the last catalogue read; null before the first. */
  readonly catalogueReadAt: number | null;
  readonly sources: Readonly<Record<Source, string>>;
  readonly results: readonly Entry[];
  readonly note: string;
}

/** The values that hold only at the moment of the search. */
export interface Moment {
  readonly network: string;
  readonly catalogueReadAt: number | null;
  isOnline(entry: Listing['entry']): boolean;
}

const SOURCE_TEXTS: Readonly<Record<Source, string>> = {
  own: 'Routes of this service.',
  market:
    'Listings on the market page of this service: each is called hourly to check that it answers 402 on the chain.',
  catalogue:
    'A third-party payment catalogue, filtered to entries payable on the chain. They are listed by that catalogue and are not called by this service.',
};
const NOTE =
  'priceUsd is what the seller asked when last seen; refuse a seller who asks for more. Replace every {placeholder} in a url. For POST, params marked body go in a JSON body. rail gateway: the buyer needs a gateway deposit on the chain. Texts of market and catalogue entries are the sellers’ own.';

/** A part of what was found, and how many entries match in all. */
export interface SearchPage {
  readonly result: SearchResult;
  readonly total: number;
}

/** Answers a search from a snapshot, in memory and synchronously. It asks no other host. */
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

/** The best entries first. Ties, and an empty query, have the snapshot's order: by price, then by source. */
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
