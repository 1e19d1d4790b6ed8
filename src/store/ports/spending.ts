/** Costs and number of payments of one relayer transaction, or of a whole day. */
export interface Spending {
  readonly wei: bigint;
  /** The part of `wei` that was spent on settling nothing. */
  readonly failedWei: bigint;
  readonly gas: bigint;
  readonly transactions: number;
  readonly payments: number;
}

/** The relayer's spending by UTC day (`YYYY-MM-DD`). When `add` resolves, the change is on disk. */
export interface RelayerSpendingStore {
  add(day: string, spending: Spending): Promise<void>;
  /** Zeros for a day on which nothing was spent. */
  spentOn(day: string): Promise<Spending>;
}

/** The spending of a day without a transaction. */
export const NOTHING_SPENT: Spending = { wei: 0n, failedWei: 0n, gas: 0n, transactions: 0, payments: 0 };
