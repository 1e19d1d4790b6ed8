import type { DueTransfer, GatewayTransferStore, KnownTransfer, TransferNote } from '../ports/transfers.ts';
import type { Pools } from './pool.ts';
import { statement } from './statement.ts';
import type { WriteQueue } from './write-queue.ts';

const DUE = statement<{ now: number; limit: number }>(
  `SELECT payment_id AS "paymentId", transfer_id AS "transferId", checks FROM gateway_transfers
    WHERE next_check_at <= @now ORDER BY next_check_at LIMIT @limit`,
);
const NOTE = statement<TransferNote & { paymentId: string }>(
  `UPDATE gateway_transfers SET status = @status, transaction_hash = @transaction, next_check_at = @nextCheckAt, checks = checks + 1
    WHERE payment_id = @paymentId`,
);
const GET = statement<{ paymentId: string }>(
  `SELECT status, transaction_hash AS "transaction", next_check_at IS NOT NULL AS "isOpen" FROM gateway_transfers
    WHERE payment_id = @paymentId`,
);
const BATCH_OF = statement<{ paymentId: string }>(
  'SELECT transaction_hash AS hash FROM gateway_transfers WHERE payment_id = @paymentId',
);
const PAYMENTS_IN = statement<{ transaction: Uint8Array; limit: number }>(
  'SELECT payment_id AS id FROM gateway_transfers WHERE transaction_hash = @transaction ORDER BY payment_id LIMIT @limit',
);

/** The store of Gateway transfers on PostgreSQL. The payment's move inserts a transfer in its own statement. `queue` is the payments' write queue. */
export function createGatewayTransferStore({ read }: Pools, queue: WriteQueue): GatewayTransferStore {
  return {
    due: (now, limit) => read<DueTransfer>(DUE({ now, limit })),
    note: (paymentId, note) => queue.write({ statements: [NOTE({ ...note, paymentId })], read: () => {} }),
    get: async (paymentId) => (await read<KnownTransfer>(GET({ paymentId })))[0] ?? null,
    batchOf: async (paymentId) => (await read<{ hash: Uint8Array | null }>(BATCH_OF({ paymentId })))[0]?.hash ?? null,
    paymentsIn: async (transaction, limit) =>
      (await read<{ id: string }>(PAYMENTS_IN({ transaction, limit }))).map(({ id }) => id),
  };
}
