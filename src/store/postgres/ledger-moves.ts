import { type Statement, statement } from '../db/connections.ts';
import { HOLDS_LEASE } from '../db/postgres.ts';
import { CHANGE_COLUMNS, changedFields } from '../payment-columns.ts';
import type { PaymentChange, PaymentState, ReplyChange } from '../ports/payments.ts';
import { afterWith } from './channel-sql.ts';

/** Changes of the reply of the payments in `moved`. */
export const REPLIES = {
  drop: 'DELETE FROM usdc_replies WHERE payment_id IN (SELECT id FROM moved)',
  store: 'INSERT INTO usdc_replies (payment_id, body) SELECT id, @body::bytea FROM moved',
  keep: 'UPDATE usdc_replies SET keep_until = @keepUntil WHERE payment_id IN (SELECT id FROM moved)',
};
/** A Gateway transfer is recognised by its id of 16 bytes. The payment's own move inserts it. */
const ACCEPT = `INSERT INTO gateway_transfers (payment_id, transfer_id, next_check_at)
                SELECT id, transaction_hash, 0 FROM moved WHERE length(transaction_hash) = 16`;

// The deposit of a state that was read at the deposit's block or later is in the noted balance already.
// The voucher's signature is read from the snapshot, because the move wipes it.
const CHARGE_CHANNEL = `
  UPDATE channels
     SET balance = balance + CASE WHEN state_block < moved.block THEN moved.amount ELSE 0 END,
         deposit_block = greatest(deposit_block, coalesce(moved.block, 0)),
         charged = greatest(channels.charged, moved.voucher_max),
         signature = CASE WHEN moved.voucher_max > channels.charged
                          THEN (SELECT voucher_signature FROM usdc_payments WHERE usdc_payments.id = moved.id) ELSE channels.signature END,
         used_at = greatest(used_at, coalesce(moved.ended_at, moved.reserved_at)),
         unclaimed_since = CASE WHEN moved.voucher_max > channels.charged THEN coalesce(unclaimed_since, moved.ended_at, moved.reserved_at)
                                ELSE unclaimed_since END
    FROM moved WHERE channels.id = moved.channel_id`;

/** What a payment's end sets beside the change. At a sale in a channel, what was charged is the price. */
function endSets(to: PaymentState, change: PaymentChange): string[] {
  if (to !== 'settled' && to !== 'failed') return [];
  const wipes = ['calldata = NULL', 'voucher_signature = NULL'];
  if (to === 'failed') return wipes;
  const charged = change.charged === undefined ? 'charged' : '@charged::numeric';
  const block = change.block === undefined ? 'usdc_payments.block' : '@block::bigint';
  const balance = `balance + CASE WHEN state_block < ${block} THEN usdc_payments.amount ELSE 0 END`;
  return [
    ...wipes,
    `charged = CASE WHEN channel_id IS NULL THEN ${charged} ELSE price END`,
    `channel_after = (SELECT ${afterWith(balance)} FROM channels WHERE channels.id = usdc_payments.channel_id)`,
  ];
}

type Values = Record<string, unknown>;
// One statement for each set of columns that a move sets.
const moves = new Map<string, (values: Values) => Statement>();

/** The statement of a move, which takes the values of the change. */
export function moveStatement(
  to: PaymentState,
  change: PaymentChange,
  reply: ReplyChange | undefined,
  hasFencingToken: boolean,
) {
  const fields = changedFields(change, to).filter((field) => to !== 'settled' || field !== 'charged');
  const sets = ['state = @to', ...fields.sort().map((field) => `${CHANGE_COLUMNS[field]} = @${field}`)];
  const where = `id = @id AND state = ANY(@from::text[])${hasFencingToken ? ` AND ${HOLDS_LEASE}` : ''}`;
  const steps = [
    `moved AS (UPDATE usdc_payments SET ${[...sets, ...endSets(to, change)].join(', ')} WHERE ${where} RETURNING *)`,
    ...(reply ? [`reply AS (${REPLIES[reply === 'drop' ? reply : 'store' in reply ? 'store' : 'keep']})`] : []),
    ...(to === 'settled' ? [`accepted AS (${ACCEPT})`, `charged AS (${CHARGE_CHANNEL})`] : []),
  ];
  const text = `WITH ${steps.join(',\n')} SELECT id FROM moved`;
  const known = moves.get(text) ?? statement<Values>(text);
  moves.set(text, known);
  return known;
}
