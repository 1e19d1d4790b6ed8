/** A transfer whose end is not known yet. */
export interface DueTransfer {
  readonly paymentId: string;
  /** 16 bytes, a UUID. */
  readonly transferId: Uint8Array;
  /** How often it was looked at. */
  readonly checks: number;
}

/** What one look at a transfer told; `nextCheckAt` (Unix milliseconds) is null when there is nothing more to learn. */
export interface TransferNote {
  readonly status: string | null;
  /** 32 bytes; the batch's, shared by its transfers. */
  readonly transaction: Uint8Array | null;
  readonly nextCheckAt: number | null;
}

/** The Gateway's transfers behind settled payments. They come in with the payment's own move, by a trigger of the database. */
export interface GatewayTransferStore {
  /** Those whose time has come at `now`, the longest due first. */
  due(now: number, limit: number): Promise<DueTransfer[]>;
  note(paymentId: string, note: TransferNote): Promise<void>;
  /** The batch's transaction behind a payment, or null while it is not known. */
  batchOf(paymentId: string): Promise<Uint8Array | null>;
  /** Ids of the payments that a batch's transaction holds, at most `limit`. */
  paymentsIn(transaction: Uint8Array, limit: number): Promise<string[]>;
}
