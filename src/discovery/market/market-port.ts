import type { Listing } from '../entry.ts';

/** The search's view of the market's listings, which the market implements. All of it is in memory. */
export interface MarketListings {
  /** A number that changes when a listing comes, goes or changes its text. `online` does not count, because `isOnline` reads it. */
  version(): number;
  /** The current listings. */
  listings(): readonly Listing[];
  /** Whether a listed URL answered its last calls. */
  isOnline(url: string): boolean;
}

/** A market without listings. */
export const NO_LISTINGS: MarketListings = { version: () => 0, listings: () => [], isOnline: () => false };
