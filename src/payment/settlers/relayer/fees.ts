import { z } from 'zod';
import type { ChainClient } from '../../../chain/rpc/client.ts';
import { parseAnswer, quantity } from '../../../chain/rpc/wire.ts';
import type { Clock } from '../../../lib/clock.ts';

/** Fees are read at most this often; they move by 2 % a block at the most on Arc. */
const MAX_AGE_MS = 2000;
/** An offer of twice the base fee outlives 35 full blocks in a row on Arc, 17 s: until then nobody waits for a newer one. */
const GOOD_MS = 15_000;
/** Enough to be taken along at once; the base fee is nearly all of the price (0.1 gwei beside 20 on Arc). */
const PRIORITY_FEE_WEI = 100_000_000n;
/** However long a transaction sticks, it is never offered more than this many times what a fresh one is. */
const CEILING = 4n;

/** What a transaction offers for each gas, in wei. */
export interface Price {
  readonly maxFeePerGas: bigint;
  readonly maxPriorityFeePerGas: bigint;
}

/** What gas costs by one reading of the newest block: a value, which no later reading changes. */
export interface Prices {
  /** The newest block's gas limit. */
  readonly blockGas: bigint;
  /** What a gas costs now, in wei; 0 before the first reading. */
  readonly gasPrice: bigint;
  /** What a new transaction offers. */
  readonly offer: Price;
  /** Whether a waiting transaction pays the next block's base fee, which is 2 % more at the most. */
  covers(price: Price): boolean;
  /** A quarter more on both counts, because nodes replace for a tenth and more of each; never less than today's offer. Null above the ceiling. */
  above(waiting: Price): Price | null;
}

/** The prices of a block with this base fee, in wei, and this gas limit. */
export function pricesAt(baseFee: bigint, blockGas: bigint): Prices {
  // What is not needed of the maximum is not paid.
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

/** What the relayer offers for gas, and how much gas a block has. */
export function createFees(chain: ChainClient, clock: Clock, signal: AbortSignal) {
  let prices = pricesAt(0n, 0n);
  let atMs = Number.NEGATIVE_INFINITY;
  let reading: Promise<void> | null = null;

  async function read(): Promise<void> {
    const raw = await chain.request('eth_getBlockByNumber', ['latest', false], { signal });
    const block = parseAnswer(newestBlock, raw, 'newest block');
    prices = pricesAt(block.baseFeePerGas, block.gasLimit);
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
    /** Resolves at once while there is an offer that will do, and looks for a newer one meanwhile: a buyer who is alone must not wait for it. */
    async ready(): Promise<void> {
      if (clock.nowMs() - atMs > GOOD_MS) return refresh();
      // The next who needs one tries again.
      void refresh().catch(() => {});
    },
    /** By the last reading; before the first nothing costs anything. */
    prices: (): Prices => prices,
  };
}

export type Fees = ReturnType<typeof createFees>;

const most = (a: bigint, b: bigint): bigint => (a > b ? a : b);
