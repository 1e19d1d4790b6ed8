import type { Sqlite } from '../../lib/sqlite-file.ts';
import { createStatements, marks } from '../db/sqlite.ts';
import { CHANGE_COLUMNS, changedFields } from '../payment-columns.ts';
import type { PaymentChange, PaymentState, ReplyChange } from '../ports/payments.ts';
import { AFTER } from './channel-sql.ts';

// The deposit of a state that was read at the deposit's block or later is in the noted balance already.
const CHARGE_CHANNEL = `
  UPDATE channels
     SET balance = balance + CASE WHEN state_block < sale.block THEN sale.amount ELSE 0 END,
         deposit_block = max(deposit_block, coalesce(sale.block, 0)),
         charged = max(channels.charged, sale.voucher_max),
         signature = CASE WHEN sale.voucher_max > channels.charged THEN sale.voucher_signature ELSE channels.signature END,
         used_at = max(used_at, coalesce(sale.ended_at, sale.reserved_at)),
         unclaimed_since = CASE WHEN sale.voucher_max > channels.charged THEN coalesce(unclaimed_since, sale.ended_at, sale.reserved_at)
                                ELSE unclaimed_since END
    FROM (SELECT * FROM usdc_payments WHERE id = ?) AS sale
   WHERE channels.id = sale.channel_id`;
const CHARGE_SALE = `
  UPDATE usdc_payments
     SET charged = price, voucher_signature = NULL, channel_after = (SELECT ${AFTER} FROM channels WHERE channels.id = usdc_payments.channel_id)
   WHERE id = ?`;

/** A payment's moves between states, synchronous. Call each inside a transaction that took the write lock when it began. */
export function createLedgerMoves(db: Sqlite) {
  const sql = createStatements(db);

  /** Null when the payment was in another state. Otherwise whether the sale belongs to a channel. */
  function changeState(id: string, from: readonly PaymentState[], to: PaymentState, change: PaymentChange) {
    const keys = changedFields(change, to);
    const sets = ['state = ?', ...keys.map((key) => `${CHANGE_COLUMNS[key]} = ?`), ...wipes(to)].join(', ');
    const statement = sql(
      `UPDATE usdc_payments SET ${sets} WHERE id = ? AND state IN (${marks(from)}) RETURNING channel_id IS NOT NULL AS inChannel`,
    );
    const moved = statement.get(to, ...keys.map((key) => boundValue(change[key])), id, ...from);
    return moved === undefined ? null : (moved as { inChannel: number }).inChannel === 1;
  }

  function changeReply(id: string, reply: ReplyChange): void {
    if (reply === 'drop') sql('DELETE FROM usdc_replies WHERE payment_id = ?').run(id);
    else if ('store' in reply) sql('INSERT INTO usdc_replies (payment_id, body) VALUES (?, ?)').run(id, reply.store);
    else sql('UPDATE usdc_replies SET keep_until = ? WHERE payment_id = ?').run(reply.keepUntil, id);
  }

  return {
    changeReply,
    move: (
      id: string,
      from: readonly PaymentState[],
      to: PaymentState,
      change: PaymentChange,
      reply: ReplyChange | undefined,
    ): boolean => {
      const inChannel = changeState(id, from, to, change);
      if (inChannel === null) return false;
      if (inChannel && to === 'settled') {
        sql(CHARGE_CHANNEL).run(id);
        sql(CHARGE_SALE).run(id);
      }
      if (reply) changeReply(id, reply);
      return true;
    },
  };
}

/** What a payment's end wipes. The voucher of a settled sale is wiped after it was put into the channel. */
function wipes(to: PaymentState): string[] {
  if (to === 'settled') return ['calldata = NULL'];
  return to === 'failed' ? ['calldata = NULL', 'voucher_signature = NULL'] : [];
}

/** A value as SQLite binds it. */
function boundValue(value: PaymentChange[keyof PaymentChange]): Exclude<typeof value, boolean | undefined> {
  if (value === undefined) return null;
  return typeof value === 'boolean' ? Number(value) : value;
}
