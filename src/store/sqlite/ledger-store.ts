import { OPEN } from '../payment-columns.ts';
import type { LedgerStore, Payment, PaymentState, ReplyChange } from '../ports/sales.ts';
import type { Sqlite } from './database.ts';
import { groupCommitOf } from './group-commit.ts';
import { createLedgerWrites } from './ledger-writes.ts';
import { type PaymentRow, paymentFromRow } from './payment-row.ts';
import { createStatements, marks } from './statements.ts';

/**
 * The ledger's store on SQLite. Concurrent writes share durable transactions, because a sale makes four writes and the sync to disk is most of their
 * cost. Each write has its own outcome, as if the calls had come one after the other.
 * Reads see committed data: acknowledged writes and not waiting ones. So each write contains its guard and does not rely on an earlier read.
 */
export function createLedgerStore(db: Sqlite): LedgerStore {
  const sql = createStatements(db);
  const commit = groupCommitOf(db);
  const writes = createLedgerWrites(db);
  // Bytes of replies that wait to be written, so that `replyBytes` includes them.
  let waitingBytes = 0;
  const one = (row: unknown): Payment | null => (row ? paymentFromRow(row as PaymentRow) : null);
  const all = (rows: unknown[]): Payment[] => rows.map((row) => paymentFromRow(row as PaymentRow));

  return {
    find: async ({ network, contract, payer, nonce }) =>
      one(
        sql('SELECT * FROM usdc_payments WHERE network = ? AND contract = ? AND payer = ? AND nonce = ?').get(
          network,
          contract,
          payer,
          nonce,
        ),
      ),
    get: async (id) => one(sql('SELECT * FROM usdc_payments WHERE id = ?').get(id)),
    findByHash: async (hash, limit) =>
      all(
        sql(
          `SELECT * FROM usdc_payments WHERE nonce = ?
            UNION SELECT * FROM usdc_payments WHERE transaction_hash = ? ORDER BY id LIMIT ?`,
        ).all(hash, hash, limit),
      ),
    findByIdentifier: async (identifierHash) =>
      one(sql("SELECT * FROM usdc_payments WHERE identifier_hash = ? AND state <> 'failed'").get(identifierHash)),
    reserve: (payment, maxOpen, reusableReason) => commit(() => writes.reserve(payment, maxOpen, reusableReason)),
    move: (id, from, to, change, reply) => {
      const bytes = storedBytes(reply);
      waitingBytes += bytes;
      return commit(() => writes.move(id, from, to, change, reply)).finally(() => {
        waitingBytes -= bytes;
      });
    },
    noteBroadcast: (entries, where) => commit(() => writes.noteBroadcast(entries, where)),
    release: (id, from) => commit(() => writes.release(id, from)),
    openBefore: async ({ network, contract, payer }, id) => {
      // Compared by id and by rowid: ids of several processes may not be in the order of inserts, and a reused row keeps its rowid.
      const row = sql(
        `SELECT coalesce(sum(amount), 0) AS total FROM usdc_payments INDEXED BY usdc_payments_open
          WHERE network = ? AND contract = ? AND payer = ? AND id <> ? AND state IN ${OPEN}
            AND (id < ? OR rowid < (SELECT rowid FROM usdc_payments WHERE id = ?))`,
      ).get(network, contract, payer, id, id, id);
      return BigInt((row as { total: number }).total);
    },
    takeReply: (id, max, now) => commit(() => writes.takeReply(id, max, now)),
    delivered: (id, now, keepUntil) => commit(() => writes.delivered(id, now, keepUntil)),
    trimReplies: (from, to, bytes) => commit(() => writes.trimReplies(from, to, bytes)),
    purgeReplies: (now) => commit(() => writes.purgeReplies(now)),
    replyBytes: async () => {
      const row = sql('SELECT coalesce(sum(length(body)), 0) AS bytes FROM usdc_replies').get();
      return (row as { bytes: number }).bytes + waitingBytes;
    },
    listByState: async (states, limit, after = '') =>
      all(
        sql(`SELECT * FROM usdc_payments WHERE state IN (${marks(states)}) AND id > ? ORDER BY id LIMIT ?`).all(
          ...states,
          after,
          limit,
        ),
      ),
    hasSettled: async ({ network, contract, payer }) =>
      sql(
        "SELECT 1 FROM usdc_payments WHERE network = ? AND contract = ? AND payer = ? AND state = 'settled' LIMIT 1",
      ).get(network, contract, payer) !== undefined,
    listLeftBehind: async (living, limit) =>
      all(
        sql(
          `SELECT * FROM usdc_payments WHERE state IN ${OPEN} AND boot_id NOT IN (${marks(living)}) ORDER BY id LIMIT ?`,
        ).all(...living, limit),
      ),
    ping: async () => {
      sql('SELECT id FROM usdc_payments LIMIT 1').get();
    },
    countByState: async () => countByState(sql),
    close: async () => {
      // Waits for earlier writes. When one fails, its own promise rejects.
      await commit(() => {}).catch(() => {});
      db.close();
    },
  };
}

/** Bytes that a change adds to the kept replies. */
function storedBytes(reply: ReplyChange | undefined): number {
  return reply !== undefined && reply !== 'drop' && 'store' in reply ? reply.store.length : 0;
}

function countByState(sql: ReturnType<typeof createStatements>): Record<PaymentState, number> {
  const counts: Record<PaymentState, number> = { reserved: 0, settling: 0, unknown: 0, settled: 0, failed: 0 };
  for (const row of sql('SELECT state, count(*) AS n FROM usdc_payments GROUP BY state').all()) {
    const { state, n } = row as { state: PaymentState; n: number };
    counts[state] = n;
  }
  return counts;
}
