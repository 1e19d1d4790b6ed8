/**
 * A listing and the results of its calls. Times in Unix milliseconds. The seller's own texts are kept as JSON that only
 * discovery reads.
 */
export interface ListingRow {
  /** Host and path: one listing each. */
  readonly place: string;
  /** The registered domain of its host. */
  readonly domain: string;
  /** JSON. */
  readonly listing: string;
  /** The method of our test calls. The listing may name another one for buyers. */
  readonly method: 'GET' | 'POST';
  /** When the price last changed. */
  readonly pricedAt: number;
  readonly checkedAt: number;
  /** Why the last call failed; null when it did not. */
  readonly reason: string | null;
  readonly failures: number;
  readonly offlineAt: number | null;
  readonly dueAt: number;
}

/** A stored listing with figures from its kept calls. */
export interface StoredListing extends ListingRow {
  readonly listedAt: number;
  /** The number of kept calls, and how many of them were answered correctly. */
  readonly calls: number;
  readonly answered: number;
  /** The median of the answered calls; null without one. */
  readonly medianLatencyMs: number | null;
}

/** The greatest numbers of listings. */
export interface MarketBounds {
  readonly total: number;
  /** For listings whose host is the new listing's domain or a name below it, whatever domain is stored with them. */
  readonly perDomain: number;
}

/** Everything that changed since a revision. */
export interface MarketChanges {
  readonly revision: number;
  /** The places of all listings. */
  readonly places: readonly string[];
  readonly changed: readonly StoredListing[];
}

/** Durable state of the market. When a write resolves, it is on disk. When it rejects, it may be there too. */
export interface MarketStore {
  find(place: string): Promise<StoredListing | null>;
  /**
   * Lists a place, or replaces its row. For a new place the bounds are checked in the same transaction. The call is
   * kept with the listing.
   */
  put(
    row: ListingRow,
    latencyMs: number,
    bounds: MarketBounds,
  ): Promise<'listed' | 'updated' | 'market_full' | 'domain_full'>;
  /** Null when nothing has changed since `revision`. */
  changesSince(revision: number): Promise<MarketChanges | null>;
  /**
   * Takes due listings, the longest waiting first. No other caller gets them before `until`; then they are due again,
   * unless `record` was called.
   */
  takeDue(now: number, until: number, limit: number): Promise<StoredListing[]>;
  /**
   * Keeps a call and the listing's new row, and deletes calls from before `keepFrom`. Does nothing when the listing was
   * deleted.
   */
  record(row: ListingRow, latencyMs: number | null, keepFrom: number): Promise<void>;
  drop(place: string): Promise<void>;
}
