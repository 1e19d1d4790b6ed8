import { buildDiscoveryIndex, type DiscoveryIndex, type IndexedDocument } from '../store/sqlite/discovery-index.ts';
import { type Listing, SOURCES, type Source } from './entry.ts';
import { priceUnits } from './filters.ts';
import { placeOf } from './listed-url.ts';

/** Everything that can be found at one moment. It never changes. */
export interface Snapshot {
  /** Ordered by price, then by source. Ties and an empty query have this order. */
  readonly listings: readonly Listing[];
  /** Its documents are the listings, by position. */
  readonly index: DiscoveryIndex;
  readonly counts: Readonly<Record<Source, number>>;
}

/** The current listings of each source, in any order. */
export type Gathered = Readonly<Record<Source, readonly Listing[]>>;

/** Orders, merges and indexes the listings of all sources. It yields to the event loop in between. */
export async function takeSnapshot(gathered: Gathered): Promise<Snapshot> {
  const merged = merge(gathered);
  const priced = merged.map((listing) => ({ listing, price: priceUnits(listing.entry.priceUsd) }));
  priced.sort((a, b) => (a.price === b.price ? byTie(a.listing, b.listing) : a.price < b.price ? -1 : 1));
  const listings = priced.map(({ listing }) => listing);
  const count = (source: Source) => listings.filter(({ entry }) => entry.source === source).length;
  const index = await buildDiscoveryIndex(listings.map(documentOf));
  return { listings, index, counts: { own: count('own'), market: count('market'), catalogue: count('catalogue') } };
}

function byTie({ entry: a }: Listing, { entry: b }: Listing): number {
  const bySource = SOURCES.indexOf(a.source) - SOURCES.indexOf(b.source);
  // The last key is text, so that the order is the same in every process.
  return bySource || (a.url < b.url ? -1 : Number(a.url > b.url)) || (a.method < b.method ? -1 : 1);
}

/**
 * Makes one list. A better source replaces the others' entries of the same host and path. One source has each method and address once.
 * Entries of our own host come only from us, because a third party's list may name routes that we do not offer.
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
