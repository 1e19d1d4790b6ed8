import { SETTLE_GAS } from '../../evm/token.ts';

/** A batch's own: the transaction, the loop and its arrays. */
const BATCH_BASE = 60_000n;
/** Of one plain transfer in a batch before any was seen; about 0.11M alone on Arc (facts of the live chain). */
const FIRST_GUESS = 150_000n;
const LEAST = 50_000n;
/** A batch uses four fifths of its limit: two fit into a block where neither is given more than five ninths of it. */
const PAIR_NUMERATOR = 5n;
const PAIR_DENOMINATOR = 9n;
/** No transaction may be given more gas (EIP-7825, in force since Osaka, whose rules Arc has), nor may more than 128 KiB (480 bytes a payment) enter a pool. */
const MOST_GAS = 2n ** 24n;
const MOST_PAYMENTS = 250;
/** However often batches are spoilt, this many still go together: fewer would cost more than what is burnt. */
const LEAST_TOGETHER = 8;

/**
 * How much gas settlements are given. A lone one has a fixed cap; a batch has the sum of its payments' budgets, and a payment's budget
 * is a quarter more than the dearest of late batches used for each. `sharePercent` is how much of a block one transaction may take.
 */
export function createGasModel(sharePercent: number) {
  let each = FIRST_GUESS;
  // Less while batches are being spoilt: what a burner can burn is what his batch was given.
  let together = Number.POSITIVE_INFINITY;

  const ceiling = (gas: bigint): bigint => (gas < MOST_GAS ? gas : MOST_GAS);

  function within(gas: bigint): number {
    const payments = Number((ceiling(gas) - BATCH_BASE) / each);
    return Math.min(MOST_PAYMENTS, Math.max(1, payments));
  }

  return {
    limit: (payments: number): bigint => (payments === 1 ? SETTLE_GAS : BATCH_BASE + BigInt(payments) * each),
    /** What one transaction could be given at the most. */
    ceiling,
    /** What a payment of a batch is expected to use. */
    expected: (): bigint => (each * 4n) / 5n,
    /** The most payments that one transaction settles while `waiting` wait; where they need several, such that two make a block. */
    most(blockGas: bigint, waiting: number): number {
      const budget = (blockGas * BigInt(sharePercent)) / 100n;
      const pair = (blockGas * PAIR_NUMERATOR) / PAIR_DENOMINATOR;
      const one = within(budget);
      return Math.min(together, waiting <= one ? one : within(budget < pair ? budget : pair));
    },
    /** A batch in which every payment went through: others burn more or less than they should. */
    learn(gasUsed: bigint, payments: number): void {
      const seen = (((gasUsed - 21_000n) / BigInt(payments)) * 5n) / 4n;
      // Up at once, down slowly: a limit that is too high costs nothing.
      each = bounded(seen > each ? seen : (each * 7n + seen) / 8n);
      together *= 2;
    },
    /** A batch of which all the gas was burnt: somebody's doing, or budgets too small. */
    spoilt(payments: number): void {
      together = Math.max(LEAST_TOGETHER, Math.floor(Math.min(together, payments) / 2));
      each = bounded((each * 5n) / 4n);
    },
  };
}

export type GasModel = ReturnType<typeof createGasModel>;

function bounded(gas: bigint): bigint {
  if (gas < LEAST) return LEAST;
  return gas > SETTLE_GAS ? SETTLE_GAS : gas;
}
