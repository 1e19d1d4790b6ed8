/** BTC/USD as the exchanges told it. */
export interface BtcUsd {
  /** Decimal string: the median of three, or the mean of two that agree. */
  readonly rate: string;
  readonly exchanges: readonly { readonly name: string; readonly rate: string }[];
  /** When the oldest of them was read, Unix milliseconds. */
  readonly retrievedAtMs: number;
}

/** The rate at which sats are priced. */
export interface RateSource {
  /** At most 60 s old; throws Unavailable (503, `btc_rate_unavailable`) when fewer than two exchanges answer, or two that do not agree. */
  current(): Promise<BtcUsd>;
  /** The newest one, however old; null before the first. For descriptors. */
  last(): BtcUsd | null;
}
