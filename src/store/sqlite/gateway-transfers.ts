import type { Sqlite } from '../../lib/sqlite-file.ts';
import type { DueTransfer, GatewayTransferStore, KnownTransfer } from '../ports/transfers.ts';

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
  const get = db.prepare<[string], Omit<KnownTransfer, 'isOpen'> & { isOpen: number }>(
    `SELECT status, transaction_hash AS "transaction", next_check_at IS NOT NULL AS isOpen FROM gateway_transfers
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
    get: async (paymentId) => {
      const row = get.get(paymentId);
      return row ? { status: row.status, transaction: row.transaction, isOpen: row.isOpen === 1 } : null;
    },
    batchOf: async (paymentId) => (batchOf.get(paymentId) as { hash: Uint8Array | null } | undefined)?.hash ?? null,
    paymentsIn: async (transaction, limit) =>
      (paymentsIn.all(transaction, limit) as { id: string }[]).map(({ id }) => id),
  };
}
