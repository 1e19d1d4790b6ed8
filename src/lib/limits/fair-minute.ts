import type { Clock } from '../clock.ts';
import { keysOf } from './client-key.ts';
import { createFairStock } from './fair-stock.ts';
import { WINDOW_MS } from './minute-windows.ts';

/** A number of events a minute that clients share. */
export interface FairMinute {
  /** Counts one more event of a client and returns 0; or counts nothing and returns the seconds until the next minute begins, at least 1. */
  take(client: string): number;
}

/**
 * Lets at most `total` events happen a minute, shared as a fair stock that is full again when the minute ends. The minute is the same for
 * all clients and begins with the first event after the last one. A client, or an IPv6 /48, gets at most `most`: with shares of the rest alone
 * each would take half of what is left, and the eighth would find none. Kept in memory, bounded by `total`: what is counted is forgotten at a restart.
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
