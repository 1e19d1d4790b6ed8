import type { Entry } from '../entry.ts';
import type { KnownListing } from './market-copy.ts';

/** A listing as it is told: a search's entry, and how its calls went. Times in Unix seconds. */
export interface ToldListing extends Omit<Entry, 'score'> {
  /** Share of the last 7 days' calls that were answered as they should be, from 0 to 1. */
  readonly uptime7d: number | null;
  /** How many calls that is of. */
  readonly calls7d: number;
  /** Of the answered ones, from the look-up of the host to the 402's headers, as seen from here. */
  readonly medianLatencyMs: number | null;
  readonly listedAt: number;
  /** Since when the price is what it is. */
  readonly pricedAt: number;
  readonly checkedAt: number;
  /** Null while it is online; 7 days later it is dropped. */
  readonly offlineAt: number | null;
  /** Why the last call failed, as the code of a refusal; null when it did not. */
  readonly problem: string | null;
}

/** Puts a listing into the form in which everybody is told of it. */
export function tellListing(known: KnownListing): ToldListing {
  const { listing, calls, answered, medianLatencyMs, offlineAt, reason } = known;
  return {
    ...listing.entry,
    online: offlineAt === null,
    uptime7d: calls === 0 ? null : Math.round((answered / calls) * 10_000) / 10_000,
    calls7d: calls,
    medianLatencyMs,
    listedAt: seconds(known.listedAt),
    pricedAt: seconds(known.pricedAt),
    checkedAt: seconds(known.checkedAt),
    offlineAt: offlineAt === null ? null : seconds(offlineAt),
    problem: reason,
  };
}

function seconds(ms: number): number {
  return Math.floor(ms / 1000);
}
