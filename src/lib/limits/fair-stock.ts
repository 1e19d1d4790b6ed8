import { keysOf } from './client-key.ts';

/** A bounded stock that clients hold parts of, such as places in a queue or bytes of a store. */
export interface FairStock {
  /**
   * Takes an amount for a client; false, and nothing is taken, where the client would hold more than is left for all others.
   * `spared` of what is left is not this client's to take: a reserve for others.
   */
  take(client: string, amount?: number, spared?: number): boolean;
  /** Gives back what was taken. */
  give(client: string, amount?: number): void;
  /** The part that no client holds. */
  free(): number;
  /** What a client holds. */
  held(client: string): number;
  /** Everything is given back. */
  clear(): void;
}

/**
 * Shares a stock so that the client that comes last finds something: a client gets more only while it holds no more than is left.
 * One greedy client ends with half of the stock, n of them with 1/(n+1) each, and as much is left for the next
 * (dynamic thresholds: Choudhury and Hahne, IEEE/ACM Transactions on Networking 6(2), 1998, with alpha = 1).
 * An IPv6 client is held to it twice: as its /64, and together with all others of its /48. A total may change with time; what is held is then
 * not taken back, and nothing more is given until it is within the total again.
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
