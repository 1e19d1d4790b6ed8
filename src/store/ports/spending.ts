/** What one transaction of the relayer's, or all of a day, cost and settled. */
export interface Spending {
  readonly wei: bigint;
  /** The part of it that settled nothing. */
  readonly failedWei: bigint;
  readonly gas: bigint;
  readonly transactions: number;
  readonly payments: number;
}

/** The relayer's spending by UTC day (`YYYY-MM-DD`); what `add` resolves with is on disk. */
export interface RelayerSpendingStore {
  add(day: string, spending: Spending): Promise<void>;
  /** Zeros for a day on which nothing was spent. */
  spentOn(day: string): Promise<Spending>;
}

/** Of a day on which nothing was sent. */
export const NOTHING_SPENT: Spending = { wei: 0n, failedWei: 0n, gas: 0n, transactions: 0, payments: 0 };
