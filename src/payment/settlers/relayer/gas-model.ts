import { CALL_GAS, LONE_CALL_GAS } from '../../usdc/checks.ts';
import { SETTLE_GAS } from '../../usdc/token.ts';

/** Gas of a batch apart from its payments: the transaction, the loop and its arrays. */
const BATCH_BASE = 60_000n;
/** Gas of one plain transfer in a batch before the first batch was seen. A lone transfer uses about 0.11M on Arc (facts of the live chain). */
const FIRST_GUESS = 150_000n;
const LEAST = 50_000n;
/** A batch uses four fifths of its gas limit. So two batches fit into a block when each has at most five ninths of it as its limit. */
const PAIR_NUMERATOR = 5n;
const PAIR_DENOMINATOR = 9n;
/**
 * The highest gas limit of a transaction (EIP-7825, in force since Osaka, whose rules Arc has). A pool accepts at most 128 KiB per transaction (480
 * bytes a payment).
 */
const MOST_GAS = 2n ** 24n;
const MOST_PAYMENTS = 250;
/** Even after many failed batches, this many payments still go together. Smaller batches would cost more than the gas that a griefer wastes. */
const LEAST_TOGETHER = 8;

/** The payments of a transaction: plain transfers, and payments with a call of their own. */
export interface Load {
  readonly transfers: number;
  readonly calls: number;
}

/**
 * Sets the gas limits of settlements. A lone settlement has a fixed limit. A batch has the sum of its payments' budgets. A transfer's budget is a
 * quarter more than the highest gas per transfer of recent batches. A call's budget is fixed. `sharePercent` is the part of a block that one
 * transaction may take.
 */
export function createGasModel(sharePercent: number) {
  let each = FIRST_GUESS;
  // Reduced while batches fail. A gas griefer can waste at most the gas limit of its batch.
  let together = Number.POSITIVE_INFINITY;

  const ceiling = (gas: bigint): bigint => (gas < MOST_GAS ? gas : MOST_GAS);

  function within(gas: bigint): number {
    const payments = Number((ceiling(gas) - BATCH_BASE) / each);
    return Math.min(MOST_PAYMENTS, Math.max(1, payments));
  }

  return {
    limit: ({ transfers, calls }: Load): bigint => {
      if (transfers + calls === 1) return calls === 1 ? LONE_CALL_GAS : SETTLE_GAS;
      return BATCH_BASE + BigInt(transfers) * each + BigInt(calls) * CALL_GAS;
    },
    /** How many transfers of a batch a call replaces: as many as have its budget together. */
    callWeight: (): number => Number((CALL_GAS + each - 1n) / each),
    /** The highest gas limit of one transaction. */
    ceiling,
    /** The expected gas of one transfer in a batch. */
    expected: (): bigint => (each * 4n) / 5n,
    /** The same for a call. */
    expectedCall: (): bigint => (CALL_GAS * 4n) / 5n,
    /**
     * The most transfers that one transaction holds while `waiting` transfers wait. A call counts as `callWeight` transfers. When they need several
     * transactions, two of them fit into a block.
     */
    most(blockGas: bigint, waiting: number): number {
      const budget = (blockGas * BigInt(sharePercent)) / 100n;
      const pair = (blockGas * PAIR_NUMERATOR) / PAIR_DENOMINATOR;
      const one = within(budget);
      return Math.min(together, waiting <= one ? one : within(budget < pair ? budget : pair));
    },
    /**
     * Learns from a batch in which every payment was settled. Other batches use more or less gas than usual. A batch with calls shows nothing about
     * the gas of a transfer.
     */
    learn(gasUsed: bigint, { transfers, calls }: Load): void {
      together *= 2;
      if (calls > 0) return;
      const seen = (((gasUsed - 21_000n) / BigInt(transfers)) * 5n) / 4n;
      // The budget rises at once and falls slowly, because a limit that is too high costs nothing.
      each = bounded(seen > each ? seen : (each * 7n + seen) / 8n);
    },
    /** Learns from a batch that used up its gas. A payer wasted it, or the budgets were too small. */
    failedBatch(payments: number): void {
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
