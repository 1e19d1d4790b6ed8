/** A transfer whose outcome is not known yet. */
export interface DueTransfer {
  readonly paymentId: string;
  /** 16 bytes, a UUID. */
  readonly transferId: Uint8Array;
  /** How often the transfer was checked. */
  readonly checks: number;
}

/** The result of one check of a transfer. `nextCheckAt` (Unix milliseconds) is null when no more checks are needed. */
export interface TransferNote {
  readonly status: string | null;
  /** The batch's transaction hash, 32 bytes, shared by its transfers. */
  readonly transaction: Uint8Array | null;
  readonly nextCheckAt: number | null;
}

/** A transfer as the last check left it. */
export interface KnownTransfer extends Omit<TransferNote, 'nextCheckAt'> {
  /** Whether it will be checked again. */
  readonly isOpen: boolean;
}

/**
 * The Gateway's transfers of settled payments. A row is inserted in the same transaction as the payment's move to
 * `settled`.
 */
export interface GatewayTransferStore {
  /** Transfers whose check is due at `now`, the longest due first. */
  due(now: number, limit: number): Promise<DueTransfer[]>;
  note(paymentId: string, note: TransferNote): Promise<void>;
  /** What is known of a payment's transfer; null for a payment without one. */
  get(paymentId: string): Promise<KnownTransfer | null>;
  /** The batch's transaction behind a payment, or null while it is not known. */
  batchOf(paymentId: string): Promise<Uint8Array | null>;
  /** Ids of the payments that a batch's transaction holds, at most `limit`. */
  paymentsIn(transaction: Uint8Array, limit: number): Promise<string[]>;
}
