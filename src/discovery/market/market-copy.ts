import type { MarketChanges, MarketStore, StoredListing } from '../../store/ports/market.ts';
import { type Listing, listingSchema } from '../entry.ts';
import type { MarketListings } from './market-port.ts';

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
