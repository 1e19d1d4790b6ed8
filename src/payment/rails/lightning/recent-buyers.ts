import type { Clock } from '../../../lib/clock.ts';
import { setNewest } from '../../../lib/set-newest.ts';

/** How long a client counts as one that has paid. */
const RECENT_MS = 3_600_000;
/** Some 1 MB at most; of more, those that paid first are forgotten. */
const MAX_BUYERS = 10_000;

/** The clients that have paid here lately. They draw on reserves that clients who only ask cannot touch. */
export interface RecentBuyers {
  /** A client's proof was claimed here. */
  add(client: string): void;
  /** Whether that was within the last hour. */
  has(client: string): boolean;
}

/** Kept in this process's memory, bounded: a restart forgets them, and each process knows its own. */
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
