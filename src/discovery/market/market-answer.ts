import type { Entry } from '../entry.ts';
import type { KnownListing } from './market-copy.ts';

/** A listing as the API returns it: a search's entry, and the results of its calls. Times in Unix seconds. */
export interface ListingAnswer extends Omit<Entry, 'score'> {
  /** Share of the last 7 days' calls that were answered correctly, from 0 to 1. */
  readonly uptime7d: number | null;
  /** The number of calls in that share. */
  readonly calls7d: number;
  /** Of the answered calls, from the DNS lookup to the 402's headers, measured from this host. */
  readonly medianLatencyMs: number | null;
  readonly listedAt: number;
  /** The time since which the price has not changed. */
  readonly pricedAt: number;
  readonly checkedAt: number;
  /** Null while the listing is online. A listing that is offline for 7 days is dropped. */
  readonly offlineAt: number | null;
  /** Why the last call failed, as a refusal's code. Null when it succeeded. */
  readonly problem: string | null;
}

/** Converts a listing to the form that the API returns. */
export function describeListing(known: KnownListing): ListingAnswer {
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
