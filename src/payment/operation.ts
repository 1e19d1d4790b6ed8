/** A call of a contract. `to` has 20 bytes. */
export interface ContractCall {
  readonly to: Uint8Array;
  readonly data: Uint8Array;
}

/** A mined transaction, as far as an operation is judged by it. */
export interface MinedTransaction {
  readonly transactionHash: string;
  readonly blockNumber: string;
  /** `0x1` when the transaction did not revert. Then its logs still decide. */
  readonly status: string;
  /** In units of gas and in wei a unit, as JSON-RPC quantities. Some nodes leave the price out. */
  readonly gasUsed?: string;
  readonly effectiveGasPrice?: string | undefined;
  readonly logs: readonly { readonly address: string; readonly topics: readonly string[]; readonly data: string }[];
}

/** An operation's end as its event shows it. `amount`: what the event says, in base units of the token. */
export interface OperationDone {
  readonly kind: 'done';
  readonly transaction: Uint8Array;
  readonly block: number;
  readonly amount: bigint;
}

/** The end of an operation that did not do what it was sent for. `reason` is for the ledger and the log. */
export interface OperationFailed {
  readonly kind: 'failed';
  readonly reason: string;
}

/**
 * How an operation ended. `failed`: a simulation refused it, or a transaction with it was mined without its event, and no transaction of ours with it
 * can still be mined; or the chain shows that it can never be carried out. Every other end is `unknown`.
 */
export type OperationOutcome = OperationDone | OperationFailed | { readonly kind: 'unknown' };

/**
 * A call of ours that is no payment: a claim, a sweep or a refund of payment channels. The contract carries it out once. A second transaction with it
 * moves nothing more, but its gas is spent. So the chain is asked before an operation that a node may have seen is sent again.
 */
export interface Operation extends ContractCall {
  /** The rail that its cost counts for. `SettlingTerms.relaying` sets it. */
  readonly rail?: string;
  /** Unique, also among the ids of payments. */
  readonly id: string;
  /** The gas limit of its transaction. */
  readonly gas: bigint;
  /**
   * The block that its simulation must not be older than, because it was decided on what stood there. It is simulated
   * at that block or the agreed head, whichever is later. Without it at the newest block of the node that is asked.
   */
  readonly leastBlock?: number;
  /** Whether a transaction with it may have been sent to a node before. */
  readonly broadcast: boolean;
  /** Returns the end that this transaction shows; null when it does not show one. It must not throw. */
  readReceipt(receipt: MinedTransaction): OperationDone | null;
  /**
   * Returns the end that the chain shows, also by a third party's transaction. `failed`: no transaction can carry the operation out any more. Null
   * when the chain shows no end. Rejects when the chain cannot be read.
   */
  lookUp(signal: AbortSignal): Promise<OperationDone | OperationFailed | null>;
  /** Writes the transaction to disk before it is sent. False when the operation no longer awaits its end and must not be sent. */
  note(transaction: Uint8Array): Promise<boolean>;
}
