import type { Sqlite } from '../../lib/sqlite-file.ts';
import { createStatements, marks } from '../db/sqlite.ts';
import { OPEN } from '../payment-columns.ts';
import type { LedgerStore, Payment, PaymentState } from '../ports/payments.ts';
import { type PaymentRow, paymentFromRow } from './payment-row.ts';

type PaymentReads = Pick<
  LedgerStore,
  | 'find'
  | 'get'
  | 'findByHash'
  | 'findByIdentifier'
  | 'openBefore'
  | 'listByState'
  | 'hasSettled'
  | 'listLeftBehind'
  | 'countByState'
>;

/** Reads rows of payments by a condition, exactly: amounts above 2^53 too. */
export function createPaymentRows(db: Sqlite) {
  const sql = createStatements(db);
  return (text: string, values: readonly unknown[]): Payment[] =>
    sql(text)
      .safeIntegers()
      .all(...values)
      .map((row) => paymentFromRow(row as PaymentRow));
}

/** The reads of the payments' store. They see committed data: acknowledged writes and not waiting ones. */
export function createPaymentReads(db: Sqlite): PaymentReads {
  const sql = createStatements(db);
  const all = createPaymentRows(db);
  const one = (text: string, ...values: readonly unknown[]): Payment | null => all(text, values)[0] ?? null;

  return {
    find: async ({ network, contract, payer, nonce }) =>
      one(
        'SELECT * FROM usdc_payments WHERE network = ? AND contract = ? AND payer = ? AND nonce = ?',
        ...[network, contract, payer, nonce],
      ),
    get: async (id) => one('SELECT * FROM usdc_payments WHERE id = ?', id),
    findByHash: async (hash, limit) =>
      all(
        `SELECT * FROM usdc_payments WHERE nonce = ?
          UNION SELECT * FROM usdc_payments WHERE transaction_hash = ? ORDER BY id LIMIT ?`,
        [hash, hash, limit],
      ),
    findByIdentifier: async (identifierHash) =>
      one("SELECT * FROM usdc_payments WHERE identifier_hash = ? AND state <> 'failed'", identifierHash),
    openBefore: async ({ network, contract, payer }, id, contracts = [contract]) => {
      // Compared by id and by rowid: ids of several processes may not be in the order of inserts, and a reused row keeps its rowid.
      const statement = sql(
        `SELECT coalesce(sum(amount), 0) AS total FROM usdc_payments INDEXED BY usdc_payments_open
          WHERE network = ? AND contract IN (${marks(contracts)}) AND payer = ? AND id <> ? AND state IN ${OPEN}
            AND (id < ? OR rowid < (SELECT rowid FROM usdc_payments WHERE id = ?))`,
      ).safeIntegers();
      return (statement.get(network, ...contracts, payer, id, id, id) as { total: bigint }).total;
    },
    listByState: async (states, limit, after = '') =>
      all(`SELECT * FROM usdc_payments WHERE state IN (${marks(states)}) AND id > ? ORDER BY id LIMIT ?`, [
        ...states,
        after,
        limit,
      ]),
    hasSettled: async ({ network, contract, payer }) =>
      sql(
        "SELECT 1 FROM usdc_payments WHERE network = ? AND contract = ? AND payer = ? AND state = 'settled' LIMIT 1",
      ).get(network, contract, payer) !== undefined,
    listLeftBehind: async (living, limit, after = '') =>
      all(
        `SELECT * FROM usdc_payments
          WHERE state IN ${OPEN} AND boot_id NOT IN (${marks(living)}) AND id > ? ORDER BY id LIMIT ?`,
        [...living, after, limit],
      ),
    countByState: async () => {
      const counts: Record<PaymentState, number> = { reserved: 0, settling: 0, unknown: 0, settled: 0, failed: 0 };
      for (const row of sql('SELECT state, count(*) AS n FROM usdc_payments GROUP BY state').all()) {
        const { state, n } = row as { state: PaymentState; n: number };
        counts[state] = n;
      }
      return counts;
    },
  };
}
