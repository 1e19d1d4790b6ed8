import type { Sqlite, Statement } from './database.ts';
import type { LedgerStore, Payment, PaymentChange, PaymentState, ReplyChange } from './ledger-port.ts';
import { type PaymentRow, paymentFromRow } from './payment-row.ts';

/** Open: may still end in a transfer, so it holds part of the payer's balance. */
const OPEN = "('reserved', 'settling', 'unknown')";

const RESERVE = `
  INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after, valid_before,
                             request_hash, client_hash, identifier_hash, reserved_at)
  SELECT @id, @network, @contract, @payer, @nonce, 'reserved', @bootId, @amount, @payTo, @validAfter, @validBefore,
         @requestHash, @clientHash, @identifierHash, @reservedAt
   WHERE @maxOpen = 0
      OR (SELECT count(*) FROM usdc_payments WHERE payer = @payer AND state IN ${OPEN}) < @maxOpen
  ON CONFLICT (network, contract, payer, nonce) DO UPDATE
     SET id = @id, state = 'reserved', boot_id = @bootId, request_hash = @requestHash, reserved_at = @reservedAt,
         transaction_hash = NULL, block = NULL, ended_at = NULL
   WHERE state = 'failed' AND reason = @reusableReason`;

const COLUMNS: Record<keyof PaymentChange, string> = {
  bootId: 'boot_id',
  signature: 'signature',
  checkedBlock: 'checked_block',
  transaction: 'transaction_hash',
  block: 'block',
  reason: 'reason',
  settlingAt: 'settling_at',
  endedAt: 'ended_at',
};

const marks = (values: readonly unknown[]): string => values.map(() => '?').join(', ');

/** The ledger's store on SQLite. Each statement is its own transaction unless two must stand or fall together. */
export function createLedgerStore(db: Sqlite): LedgerStore {
  const prepared = new Map<string, Statement>();
  const sql = (text: string) => {
    const known = prepared.get(text);
    if (known) return known;
    const statement = db.prepare<unknown[], unknown>(text);
    prepared.set(text, statement);
    return statement;
  };
  const one = (row: unknown): Payment | null => (row ? paymentFromRow(row as PaymentRow) : null);

  const changeState = (id: string, from: readonly PaymentState[], to: PaymentState, change: PaymentChange): boolean => {
    const keys = (Object.keys(change) as (keyof PaymentChange)[]).filter((key) => change[key] !== undefined);
    const sets = ['state = ?', ...keys.map((key) => `${COLUMNS[key]} = ?`)].join(', ');
    const statement = sql(`UPDATE usdc_payments SET ${sets} WHERE id = ? AND state IN (${marks(from)})`);
    return statement.run(to, ...keys.map((key) => change[key] ?? null), id, ...from).changes === 1;
  };
  const changeReply = (id: string, reply: ReplyChange): void => {
    if (reply === 'drop') sql('DELETE FROM usdc_replies WHERE payment_id = ?').run(id);
    else if ('store' in reply) sql('INSERT INTO usdc_replies (payment_id, body) VALUES (?, ?)').run(id, reply.store);
    else sql('UPDATE usdc_replies SET keep_until = ? WHERE payment_id = ?').run(reply.keepUntil, id);
  };
  const move = db.transaction(
    (id: string, from: readonly PaymentState[], to: PaymentState, change: PaymentChange, reply?: ReplyChange) => {
      if (!changeState(id, from, to, change)) return false;
      if (reply) changeReply(id, reply);
      return true;
    },
  );
  const release = db.transaction((id: string, from: readonly PaymentState[]): boolean => {
    const where = `WHERE id = ? AND state IN (${marks(from)})`;
    const failedBefore = sql(
      `UPDATE usdc_payments SET state = 'failed', signature = NULL ${where} AND reason IS NOT NULL`,
    );
    if (failedBefore.run(id, ...from).changes === 1) {
      changeReply(id, 'drop');
      return true;
    }
    return sql(`DELETE FROM usdc_payments ${where}`).run(id, ...from).changes === 1;
  });
  const noteBroadcast = db.transaction(
    (entries: readonly { id: string; transaction: Uint8Array }[], where: readonly PaymentState[]) => {
      const statement = sql(
        `UPDATE usdc_payments SET transaction_hash = ? WHERE id = ? AND state IN (${marks(where)})`,
      );
      const noted = entries.filter(({ id, transaction }) => statement.run(transaction, id, ...where).changes === 1);
      return new Set(noted.map(({ id }) => id));
    },
  );
  const takeReply = db.transaction((id: string, max: number, now: number): Uint8Array | null => {
    const row = sql('SELECT body FROM usdc_replies WHERE payment_id = ? AND keep_until > ?').get(id, now);
    if (!row) return null;
    const counted = sql(
      "UPDATE usdc_payments SET deliveries = deliveries + 1 WHERE id = ? AND state = 'settled' AND deliveries < ?",
    ).run(id, max);
    return counted.changes === 1 ? (row as { body: Uint8Array }).body : null;
  });

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
      sql(
        `SELECT * FROM usdc_payments WHERE nonce = ?
          UNION SELECT * FROM usdc_payments WHERE transaction_hash = ? ORDER BY id LIMIT ?`,
      )
        .all(hash, hash, limit)
        .map((row) => paymentFromRow(row as PaymentRow)),
    reserve: async (payment, maxOpen, reusableReason) =>
      sql(RESERVE).run({
        ...payment,
        validAfter: String(payment.validAfter),
        validBefore: String(payment.validBefore),
        maxOpen,
        reusableReason,
      }).changes === 1,
    move: async (id, from, to, change, reply) => move.immediate(id, from, to, change, reply),
    noteBroadcast: async (entries, where) => noteBroadcast.immediate(entries, where),
    release: async (id, from) => release.immediate(id, from),
    openBefore: async ({ network, contract, payer }, id) => {
      const row = sql(
        `SELECT coalesce(sum(amount), 0) AS total FROM usdc_payments
          WHERE network = ? AND contract = ? AND payer = ? AND id < ? AND state IN ${OPEN}`,
      ).get(network, contract, payer, id);
      return BigInt((row as { total: number }).total);
    },
    takeReply: async (id, max, now) => takeReply.immediate(id, max, now),
    purgeReplies: async (now) => sql('DELETE FROM usdc_replies WHERE keep_until <= ?').run(now).changes,
    replyBytes: async () => {
      const row = sql('SELECT coalesce(sum(length(body)), 0) AS bytes FROM usdc_replies').get();
      return (row as { bytes: number }).bytes;
    },
    listByState: async (states, limit) =>
      sql(`SELECT * FROM usdc_payments WHERE state IN (${marks(states)}) ORDER BY id LIMIT ?`)
        .all(...states, limit)
        .map((row) => paymentFromRow(row as PaymentRow)),
    listLeftBehind: async (bootId, limit) =>
      sql(`SELECT * FROM usdc_payments WHERE state IN ${OPEN} AND boot_id <> ? ORDER BY id LIMIT ?`)
        .all(bootId, limit)
        .map((row) => paymentFromRow(row as PaymentRow)),
    ping: async () => {
      sql('SELECT id FROM usdc_payments LIMIT 1').get();
    },
    countByState: async () => {
      const counts: Record<PaymentState, number> = { reserved: 0, settling: 0, unknown: 0, settled: 0, failed: 0 };
      for (const row of sql('SELECT state, count(*) AS n FROM usdc_payments GROUP BY state').all()) {
        const { state, n } = row as { state: PaymentState; n: number };
        counts[state] = n;
      }
      return counts;
    },
    close: async () => {
      db.close();
    },
  };
}
