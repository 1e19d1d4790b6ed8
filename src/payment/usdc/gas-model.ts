import { SETTLE_GAS } from './token.ts';

/** A batch's own: the transaction, the loop and its arrays. */
const BATCH_BASE = 60_000n;
/** Of one plain transfer in a batch before any was seen; about 0.11M on Arc (facts of the live chain). */
const FIRST_GUESS = 150_000n;
const LEAST = 50_000n;

/**
 * How much gas settlements are given. A lone one has a fixed cap; a batch has the sum of its payments' budgets, and a payment's budget
 * is a quarter more than the dearest of late batches used for each. `sharePercent` is how much of a block one transaction may take.
 */
export function createGasModel(sharePercent: number) {
  let each = FIRST_GUESS;

  return {
    limit: (payments: number): bigint => (payments === 1 ? SETTLE_GAS : BATCH_BASE + BigInt(payments) * each),
    /** The most payments that one transaction settles. */
    most: (blockGas: bigint): number => {
      const budget = (blockGas * BigInt(sharePercent)) / 100n;
      return Math.max(1, Number((budget - BATCH_BASE) / each));
    },
    /** A batch in which every payment went through: others burn more or less than they should. */
    learn(gasUsed: bigint, payments: number): void {
      const seen = (((gasUsed - 21_000n) / BigInt(payments)) * 5n) / 4n;
      // Up at once, down slowly: a limit that is too high costs nothing.
      each = seen > each ? seen : (each * 7n + seen) / 8n;
      if (each < LEAST) each = LEAST;
      if (each > SETTLE_GAS) each = SETTLE_GAS;
    },
  };
}

export type GasModel = ReturnType<typeof createGasModel>;
