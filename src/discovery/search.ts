import type { Entry, Listing, Source } from './entry.ts';
import { createFilter } from './filters.ts';
import { readQuestion } from './question.ts';
import { type Ranked, rank } from './ranking.ts';
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

/** Answers a search from a snapshot, in memory and synchronously. It asks no other host. */
export function search(snapshot: Snapshot, moment: Moment, params: SearchParams): SearchResult {
  const { listings, counts } = snapshot;
  const results = pick(snapshot, params).flatMap(({ id, score }): Entry[] => {
    const entry = listings[id]?.entry;
    return entry ? [{ ...entry, online: moment.isOnline(entry), score }] : [];
  });
  return {
    query: params.q,
    network: moment.network,
    count: results.length,
    searched: { ownRoutes: counts.own, marketListings: counts.market, catalogue: counts.catalogue },
    catalogueReadAt: moment.catalogueReadAt,
    sources: SOURCE_TEXTS,
    results,
    note: NOTE,
  };
}

/** The best entries first. Ties, and an empty query, have the snapshot's order: by price, then by source. */
function pick({ listings, index }: Snapshot, params: SearchParams): Ranked[] {
  const filter = createFilter(params);
  const passes = (id: number) => {
    const listing = listings[id];
    return listing !== undefined && filter(listing.entry);
  };
  if (params.q.trim() !== '') return rank(index, readQuestion(params.q), { limit: params.limit, passes });
  const cheapest: Ranked[] = [];
  for (let id = 0; id < listings.length && cheapest.length < params.limit; id++) {
    if (passes(id)) cheapest.push({ id, score: 0 });
  }
  return cheapest;
}
