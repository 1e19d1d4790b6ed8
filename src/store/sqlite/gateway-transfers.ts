import type { Sqlite } from './database.ts';

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

/** The store of Gateway transfers on the ledger's database. */
export function createGatewayTransferStore(db: Sqlite): GatewayTransferStore {
  const due = db.prepare(
    `SELECT payment_id AS paymentId, transfer_id AS transferId, checks FROM gateway_transfers
      WHERE next_check_at <= ? ORDER BY next_check_at LIMIT ?`,
  );
  const note = db.prepare(
    `UPDATE gateway_transfers SET status = ?, transaction_hash = ?, next_check_at = ?, checks = checks + 1
      WHERE payment_id = ?`,
  );
  const batchOf = db.prepare('SELECT transaction_hash AS hash FROM gateway_transfers WHERE payment_id = ?');
  const paymentsIn = db.prepare(
    'SELECT payment_id AS id FROM gateway_transfers WHERE transaction_hash = ? ORDER BY id LIMIT ?',
  );
  return {
    due: async (now, limit) => due.all(now, limit) as DueTransfer[],
    note: async (paymentId, { status, transaction, nextCheckAt }) => {
      note.run(status, transaction, nextCheckAt, paymentId);
    },
    batchOf: async (paymentId) => (batchOf.get(paymentId) as { hash: Uint8Array | null } | undefined)?.hash ?? null,
    paymentsIn: async (transaction, limit) =>
      (paymentsIn.all(transaction, limit) as { id: string }[]).map(({ id }) => id),
  };
}
