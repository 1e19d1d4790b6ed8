/** What a listing says and how it stands. Times in Unix milliseconds. What sellers said is kept as text that only discovery reads. */
export interface ListingRow {
  /** Host and path: one listing each. */
  readonly place: string;
  /** The registered domain of its host, under which it is called. */
  readonly domain: string;
  /** JSON. */
  readonly listing: string;
  /** The method that is called, which may be another one than buyers are told. */
  readonly method: 'GET' | 'POST';
  /** Since when the price is what it is. */
  readonly pricedAt: number;
  readonly checkedAt: number;
  /** Why the last call failed; null when it did not. */
  readonly reason: string | null;
  readonly failures: number;
  readonly offlineAt: number | null;
  readonly dueAt: number;
}

/** A stored listing with what its kept calls show. */
export interface StoredListing extends ListingRow {
  readonly listedAt: number;
  /** Kept calls, and how many of them were answered as they should be. */
  readonly calls: number;
  readonly answered: number;
  /** The median of the answered ones. */
  readonly medianLatencyMs: number | null;
}

/** How many listings there may be. */
export interface MarketBounds {
  readonly total: number;
  /** Of listings whose host is the new one's domain or a name below it, whatever domain they were stored with. */
  readonly perDomain: number;
}

/** Everything that changed since a revision. */
export interface MarketChanges {
  readonly revision: number;
  /** Of all listings there are. */
  readonly places: readonly string[];
  readonly changed: readonly StoredListing[];
}

/** Durable state of the market. What a promise resolves with is on disk; a method that rejects changed nothing. */
export interface MarketStore {
  find(place: string): Promise<StoredListing | null>;
  /**
   * Lists a place, or replaces what is known of it; the bounds are judged in the same transaction, for new ones alone.
   * Its call is kept with it.
   */
  put(
    row: ListingRow,
    latencyMs: number,
    bounds: MarketBounds,
  ): Promise<'listed' | 'updated' | 'market_full' | 'domain_full'>;
  /** Null while nothing has changed since. */
  changesSince(revision: number): Promise<MarketChanges | null>;
  /** Takes listings that are due, the longest waiting first; nobody else gets them before `until`, when they are due again unless they were recorded. */
  takeDue(now: number, until: number, limit: number): Promise<StoredListing[]>;
  /** Keeps a call and how the listing stands after it; calls from before `keepFrom` go. Nothing happens to a listing that is gone. */
  record(row: ListingRow, latencyMs: number | null, keepFrom: number): Promise<void>;
  drop(place: string): Promise<void>;
}
