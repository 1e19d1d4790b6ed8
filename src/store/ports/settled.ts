/** Payments that came in on one rail within a span. */
export interface SettledSum {
  readonly rail: 'usdc' | 'lightning';
  /** USDC: the contract that payers signed for, which tells the plain rail from the Gateway's; null on Lightning. */
  readonly contract: Uint8Array | null;
  readonly count: number;
  /** Base units of USDC, or millisatoshis. */
  readonly amount: bigint;
}

/** Reader of what was earned; plain SQL that PostgreSQL runs too. */
export interface SettledReads {
  /** What settled, or was claimed through our own routes, from `from` (inclusive) to `to` (exclusive), in Unix milliseconds. Costs what lies in between. */
  settledBetween(from: number, to: number): Promise<SettledSum[]>;
}
