import type { Hex } from './keys.ts';
import type { Transaction } from './transactions.ts';

/** What waits to be mined. */
export interface Pending {
  readonly transaction: Transaction;
  /** In which order they came. */
  readonly order: number;
}

/** Arc's nodes drop what offers less, without a word. */
const LEAST_FEE = 20_000_000_000n;

/** Waiting transactions, one for each sender and nonce: a dearer one by a tenth takes a place that is taken. */
export function createMempool() {
  const places = new Map<string, Pending>();
  let order = 0;
  const placeOf = ({ from, nonce }: Transaction): string => `${from} ${nonce}`;

  return {
    /** Null when it waits now, else what a node says. */
    add(transaction: Transaction, minedNonce: number, funds: bigint): string | null {
      if (transaction.nonce < minedNonce) return 'nonce too low';
      const cost = BigInt(transaction.gas) * transaction.maxFee + transaction.value;
      if (cost > funds) return 'insufficient funds for gas * price + value';
      const place = placeOf(transaction);
      const before = places.get(place)?.transaction;
      if (before?.hash === transaction.hash) return 'already known';
      if (before && !outbids(transaction, before)) return 'replacement transaction underpriced';
      if (transaction.maxFee >= LEAST_FEE) places.set(place, { transaction, order: order++ });
      return null;
    },
    /** Those that a block may take, the highest tip first; of one sender those whose turn it is. */
    next(nonceOf: (sender: Hex) => number, baseFee: bigint): Transaction | null {
      let best: Pending | null = null;
      for (const pending of places.values()) {
        const { from, nonce, maxFee } = pending.transaction;
        if (nonce !== nonceOf(from) || maxFee < baseFee) continue;
        if (best === null || comesBefore(pending, best)) best = pending;
      }
      return best?.transaction ?? null;
    },
    remove: (transaction: Transaction) => void places.delete(placeOf(transaction)),
    /** Everything below what the sender has used is gone. */
    forgetPast(nonceOf: (sender: Hex) => number): void {
      for (const [place, { transaction }] of places)
        if (transaction.nonce < nonceOf(transaction.from)) places.delete(place);
    },
    all: (): Transaction[] => [...places.values()].map(({ transaction }) => transaction),
    has: (hash: Hex): boolean => [...places.values()].some(({ transaction }) => transaction.hash === hash),
    size: (): number => places.size,
  };
}

function outbids(one: Transaction, other: Transaction): boolean {
  return one.maxFee * 10n >= other.maxFee * 11n && one.tip * 10n >= other.tip * 11n;
}

function comesBefore(one: Pending, other: Pending): boolean {
  const [a, b] = [one.transaction.tip, other.transaction.tip];
  return a === b ? one.order < other.order : a > b;
}
