import { buildDiscoveryIndex, type DiscoveryIndex, type IndexedDocument } from '../store/sqlite/discovery-index.ts';
import { type Listing, SOURCES, type Source } from './entry.ts';
import { priceUnits } from './filters.ts';
import { placeOf } from './listed-url.ts';

/** Everything that can be found at one moment; it never changes. */
export interface Snapshot {
  /** By price, then by source: the order of ties and of an empty query. */
  readonly listings: readonly Listing[];
  /** Its documents are the listings, by their places. */
  readonly index: DiscoveryIndex;
  readonly counts: Readonly<Record<Source, number>>;
}

/** What the sources list now, each of them in any order. */
export type Gathered = Readonly<Record<Source, readonly Listing[]>>;

/** Orders, merges and indexes what the sources list; other work has its turn meanwhile. */
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
  // At last by text, so that the order is the same in every process.
  return bySource || (a.url < b.url ? -1 : Number(a.url > b.url)) || (a.method < b.method ? -1 : 1);
}

/**
 * One list: what a better source has under the same host and path stands in for what others say of it, and one source has the same method
 * and address once. Of our own host only our own word counts: a stranger's list may hold routes that we do not offer.
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
