/** What a payment channel is. Its id is a hash of all of it. */
export interface ChannelConfig {
  /** 20 bytes each. */
  readonly payer: Uint8Array;
  /** The key that signs vouchers; 20 zero bytes where the payer itself signs, by key or as a contract. */
  readonly payerAuthorizer: Uint8Array;
  readonly receiver: Uint8Array;
  /** The key that signs claims and refunds for the receiver. */
  readonly receiverAuthorizer: Uint8Array;
  readonly token: Uint8Array;
  /** Seconds between the payer's request to withdraw and the withdrawal. */
  readonly withdrawDelay: number;
  /** 32 bytes. It distinguishes channels of the same parties. */
  readonly salt: Uint8Array;
}

/** What the chain shows of a channel at one block. Amounts in base units of the token. */
export interface ChannelState {
  /** Deposits less refunds and withdrawals. Claims do not lower it. */
  readonly balance: bigint;
  readonly totalClaimed: bigint;
  /** What the payer has asked to withdraw, and when, in Unix seconds; 0 and 0 without such a request. */
  readonly withdrawAmount: bigint;
  readonly withdrawAt: number;
  readonly refundNonce: bigint;
  readonly block: number;
}

/** The voucher that a sale charges: the channel's charges rise to `max`. */
export interface ChannelCharge {
  readonly channelId: Uint8Array;
  /**
   * The cumulative amount that the payer signed for, which is the channel's charges before this sale plus its price.
   */
  readonly max: bigint;
  /** The voucher's signature, 65 bytes. */
  readonly signature: Uint8Array;
}
