import type { Clock } from '../../../lib/clock.ts';
import { setNewest } from '../../../lib/set-newest.ts';

/** How long a client counts as a buyer after a payment, in milliseconds. */
const RECENT_MS = 3_600_000;
/** About 1 MB at most. Beyond that, the client that paid longest ago is dropped. */
const MAX_BUYERS = 10_000;

/** The clients that have paid here within the hour. They may use reserves that other clients may not. */
export interface RecentBuyers {
  /** Notes that a client's proof was claimed here. */
  add(client: string): void;
  /** Whether that was within the last hour. */
  has(client: string): boolean;
}

/** Kept in this process's memory and bounded. A restart forgets it, and processes do not share it. */
export function createRecentBuyers(clock: Clock, maxBuyers = MAX_BUYERS): RecentBuyers {
  // Insertion order is the order of the last payments.
  const paidAtMs = new Map<string, number>();
  return {
    add(client) {
      setNewest(paidAtMs, client, clock.nowMs(), maxBuyers);
    },
    has: (client) => clock.nowMs() - (paidAtMs.get(client) ?? Number.NEGATIVE_INFINITY) < RECENT_MS,
  };
}
