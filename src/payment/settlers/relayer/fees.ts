import { z } from 'zod';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import { parseAnswer, quantity } from '../../../chain/rpc/wire.ts';
import type { Clock } from '../../../lib/clock.ts';

/** Fees are read at most this often, in milliseconds. On Arc they move by at most 2 % per block. */
const MAX_AGE_MS = 2000;
/** In milliseconds. An offer of twice the base fee covers 35 full blocks in a row on Arc, 17 s. Until then no round waits for newer prices. */
const GOOD_MS = 15_000;
/** Enough to be mined at once. The base fee is nearly all of the price: this is 0.1 gwei, the base fee is 20 gwei on Arc. */
const PRIORITY_FEE_WEI = 100_000_000n;
/** A late transaction is never offered more than this many times today's offer. */
const CEILING = 4n;

/**
 * A base fee of more than this many times the last one is asked of another provider. On Arc 35 full blocks in a row
 * double it.
 */
const JUMP = 2n;

/** What a transaction offers per unit of gas, in wei. */
export interface Price {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** The price of gas by one read of the newest block. The object never changes. */
export interface Prices {
  /** The newest block's gas limit. */
  readonly blockGas: bigint;
  /** The current price of one unit of gas, in wei; 0 before the first read. */
  readonly gasPrice: bigint;
  /** What a new transaction offers. */
  readonly offer: Price;
  /** Whether a waiting transaction covers the next block's base fee, which is at most 2 % higher. */
  covers(price: Price): boolean;
  /**
   * The price of a replacement: a quarter more for both fees, because nodes require at least a tenth more of each, and never less than today's offer.
   * Null above the ceiling.
   */
  above(waiting: Price): Price | null;
}

/** Computes the prices of a block from its base fee, in wei, and its gas limit. */
export function pricesAt(baseFee: bigint, blockGas: bigint): Prices {
  // The part of the maximum above the base fee is not charged.
  const offer: Price = { maxFeePerGas: 2n * baseFee + PRIORITY_FEE_WEI, maxPriorityFeePerGas: PRIORITY_FEE_WEI };
  return {
    ...{ blockGas, offer, gasPrice: baseFee === 0n ? 0n : baseFee + PRIORITY_FEE_WEI },
    covers: ({ maxFeePerGas }) => maxFeePerGas * 50n >= baseFee * 51n,
    above: (waiting) => {
      const raised = {
        maxFeePerGas: most(offer.maxFeePerGas, (waiting.maxFeePerGas * 5n) / 4n),
        maxPriorityFeePerGas: most(offer.maxPriorityFeePerGas, (waiting.maxPriorityFeePerGas * 5n) / 4n),
      };
      return raised.maxFeePerGas > CEILING * offer.maxFeePerGas ? null : raised;
    },
  };
}

const newestBlock = z.object({ baseFeePerGas: quantity, gasLimit: quantity });

/** Reads what the relayer offers for gas, and a block's gas limit. */
export function createFees(chain: ChainClient, clock: Clock, signal: AbortSignal) {
  let baseFee = 0n;
  let prices = pricesAt(baseFee, 0n);
  let atMs = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | null = null;

  async function readFrom(turn: number): Promise<z.output<typeof newestBlock>> {
    const raw = await chain.request('eth_getBlockByNumber', ['latest', false], { signal, turn });
    return parseAnswer(newestBlock, raw, 'newest block');
  }

  /**
   * A base fee that has doubled would stop sales by the day's budget, on one provider's word. So another is asked, and
   * the lower one counts.
   */
  async function read(): Promise<void> {
    const block = await readFrom(0);
    const { baseFeePerGas: own, gasLimit } = block;
    const isSudden = chain.agreed.witnesses > 1 && own > JUMP * baseFee;
    const other = isSudden ? await readFrom(1).catch(() => block) : block;
    baseFee = least(other.baseFeePerGas, own);
    prices = pricesAt(baseFee, gasLimit);
    atMs = clock.nowMs();
  }

  async function refresh(): Promise<void> {
    if (clock.nowMs() - atMs <= MAX_AGE_MS) return;
    reading ??= read().finally(() => {
      reading = null;
    });
    await reading;
  }

  return {
    refresh,
    /**
     * Resolves at once while the last prices are younger than GOOD_MS, and reads newer ones in the background. So a lone buyer does not wait for that
     * read.
     */
    async ready(): Promise<void> {
      if (clock.nowMs() - atMs > GOOD_MS) return refresh();
      // The next call tries again.
      void refresh().catch(() => {});
    },
    /** The last prices. All prices are 0 before the first read. */
    prices: (): Prices => prices,
  };
}

export type Fees = ReturnType<typeof createFees>;

const most = (a: bigint, b: bigint): bigint => (a > b ? a : b);
const least = (a: bigint, b: bigint): bigint => (a < b ? a : b);
