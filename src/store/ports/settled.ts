/** Payments that came in on one rail within a span. */
export interface SettledSum {
  readonly rail: 'usdc' | 'lightning';
  /** The contract that payers signed for, which distinguishes `usdc-exact` from `usdc-gateway`. Null on Lightning. */
  readonly contract: Uint8Array | null;
  readonly count: number;
  /**
   * Base units of USDC, or millisatoshis. Of a sale in a channel what was charged, also when it brought a larger
   * deposit.
   */
  readonly amount: bigint;
}

/** Reader of the income. */
export interface SettledReads {
  /**
   * Sums of the payments that settled, or were claimed through our own routes, from `from` (inclusive) to `to`
   * (exclusive), in Unix milliseconds. Reads only the rows of this span.
   */
  settledBetween(from: number, to: number): Promise<SettledSum[]>;
}
