import type { Listing } from '../entry.ts';

/** How a search reads the market's listings; whoever keeps them offers this. All of it is in memory: a search asks nobody. */
export interface MarketListings {
  /** Another number after every listing that came, went or changed in what it says; not for `online`, which is asked apart. */
  version(): number;
  /** Those that are listed now. */
  listings(): readonly Listing[];
  /** Whether a listed URL answered its last calls. */
  isOnline(url: string): boolean;
}

/** A market without listings. */
export const NO_LISTINGS: MarketListings = { version: () => 0, listings: () => [], isOnline: () => false };
