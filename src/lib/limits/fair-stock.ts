import { keysOf } from './client-key.ts';

/** A limited stock that is shared among clients, such as places in a queue or bytes of a store. */
export interface FairStock {
  /**
   * Takes an amount for a client. Takes nothing and returns false when the client would hold more than is left for all others.
   * `spared` is a part of the rest that this client may not take: a reserve for others.
   */
  take(client: string, amount?: number, spared?: number): boolean;
  /** Gives back an amount that was taken. */
  give(client: string, amount?: number): void;
  /** The part that no client holds. */
  free(): number;
  /** What a client holds. */
  held(client: string): number;
  /** Gives back everything. */
  clear(): void;
}

/**
 * Shares a stock so that every new client finds something: a client gets more only while it holds no more than is left.
 * One greedy client gets half of the stock, n of them get 1/(n+1) each, and the same amount is left for the next
 * (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998, with alpha = 1).
 * The rule holds for an IPv6 client twice: for its /64, and for all clients of its /48 together. The total may change with time. Held amounts are
 * then not taken back, and no more is given until they are within the total again.
 */
export function createFairStock(total: number | (() => number)): FairStock {
  const size = typeof total === 'number' ? () => total : total;
  const holdings = new Map<string, number>();
  let taken = 0;

  const held = (key: string): number => holdings.get(key) ?? 0;

  function add(key: string, amount: number): void {
    const now = held(key) + amount;
    if (now > 0) holdings.set(key, now);
    else holdings.delete(key);
  }

  return {
    take(client, amount = 1, spared = 0) {
      const keys = keysOf(client);
      const free = size() - taken - spared;
      if (keys.some((key) => held(key) + amount > free)) return false;
      taken += amount;
      for (const key of keys) add(key, amount);
      return true;
    },
    give(client, amount = 1) {
      const given = Math.min(amount, held(client));
      taken -= given;
      for (const key of keysOf(client)) add(key, -given);
    },
    free: () => Math.max(0, size() - taken),
    held,
    clear() {
      holdings.clear();
      taken = 0;
    },
  };
}
