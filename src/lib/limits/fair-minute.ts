import type { Clock } from '../clock.ts';
import { keysOf } from './client-key.ts';
import { createFairStock } from './fair-stock.ts';
import { WINDOW_MS } from './minute-windows.ts';

/** A limit of events a minute that clients share. */
export interface FairMinute {
  /** Counts an event of a client and returns 0. Or counts nothing and returns the seconds until the next minute begins, at least 1. */
  take(client: string): number;
}

/**
 * Allows at most `total` events a minute, shared as a fair stock that is refilled when the minute ends. The minute is the same for all clients. It
 * begins with the first event after the last minute. A client, or an IPv6 /48, gets at most `most`; without this each client could take half of the
 * rest, and the eighth would find none. The counts are in memory, bounded by `total`, and lost at a restart.
 */
export function createFairMinute(total: number, clock: Clock, most = total): FairMinute {
  const stock = createFairStock(total);
  let endsAtMs = Number.NEGATIVE_INFINITY;

  return {
    take(client) {
      const now = clock.nowMs();
      if (now >= endsAtMs) {
        stock.clear();
        endsAtMs = now + WINDOW_MS;
      }
      const mayTake = keysOf(client).every((key) => stock.held(key) < most);
      return mayTake && stock.take(client) ? 0 : Math.max(1, Math.ceil((endsAtMs - now) / 1000));
    },
  };
}
