import type { Sqlite } from '../../lib/sqlite-file.ts';
import { TAKES_SALE, voucherValues } from '../channel-columns.ts';
import { createStatements, marks } from '../db/sqlite.ts';
import { OPEN } from '../payment-columns.ts';
import type { NewPayment, PaymentState, ReplyChange } from '../ports/payments.ts';
import { createLedgerMoves } from './ledger-moves.ts';

// A failed row holds no identifier. The condition is that of the unique index, which decides between two concurrent reservations.
const RESERVE = `
  INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after, valid_before,
                             authorization_hash, request_hash, price, client_hash, identifier_hash, reserved_at, route, protocol,
                             channel_id, voucher_max, voucher_signature)
  SELECT @id, @network, @contract, @payer, @nonce, 'reserved', @bootId, @amount, @payTo, @validAfter, @validBefore,
         @authorizationHash, @requestHash, @price, @clientHash, @identifierHash, @reservedAt, @route, @protocol,
         @channelId, @voucherMax, @voucherSignature
   WHERE (@maxOpen = 0
      OR (SELECT count(*) FROM usdc_payments WHERE payer = @payer AND state IN ${OPEN}) < @maxOpen)
     AND NOT EXISTS (SELECT 1 FROM usdc_payments WHERE identifier_hash = @identifierHash AND state <> 'failed')
     AND ${TAKES_SALE}
  ON CONFLICT (network, contract, payer, nonce) DO UPDATE
     SET id = @id, state = 'reserved', boot_id = @bootId, request_hash = @requestHash, price = @price,
         identifier_hash = @identifierHash, reserved_at = @reservedAt, route = @route, protocol = @protocol, transaction_hash = NULL, block = NULL, ended_at = NULL,
         channel_id = @channelId, voucher_max = @voucherMax, voucher_signature = @voucherSignature
   WHERE state = 'failed' AND reason = @reusableReason AND authorization_hash = @authorizationHash`;

// Counts from the newest reply, so the oldest are deleted.
const TRIM = `
  DELETE FROM usdc_replies WHERE payment_id IN (
    SELECT payment_id FROM (
      SELECT payment_id, sum(length(body)) OVER (ORDER BY keep_until DESC, payment_id DESC) AS newest FROM usdc_replies
       WHERE keep_until > @from AND keep_until <= @to) AS kept
     WHERE newest > @bytes)`;

/** The port's writes, synchronous. Call each inside a transaction that took the write lock when it began. */
export function createLedgerWrites(db: Sqlite) {
  const sql = createStatements(db);
  const { move, changeReply } = createLedgerMoves(db);

  return {
    reserve: (payment: NewPayment, maxOpen: number, reusableReason: string | null): boolean => {
      const [validAfter, validBefore] = [String(payment.validAfter), String(payment.validBefore)];
      const voucher = voucherValues(payment.channel);
      return (
        sql(RESERVE).run({ ...payment, ...voucher, validAfter, validBefore, maxOpen, reusableReason }).changes === 1
      );
    },
    move,
    noteBroadcast: (
      entries: readonly { id: string; transaction: Uint8Array }[],
      where: readonly PaymentState[],
    ): ReadonlySet<string> => {
      const statement = sql(
        `UPDATE usdc_payments SET transaction_hash = ? WHERE id = ? AND state IN (${marks(where)})`,
      );
      const noted = entries.filter(({ id, transaction }) => statement.run(transaction, id, ...where).changes === 1);
      return new Set(noted.map(({ id }) => id));
    },
    release: (id: string, from: readonly PaymentState[]): boolean => {
      const where = `WHERE id = ? AND state IN (${marks(from)}) AND transaction_hash IS NULL`;
      const failedBefore = sql(
        `UPDATE usdc_payments SET state = 'failed', signature = NULL, calldata = NULL, voucher_signature = NULL ${where} AND reason IS NOT NULL`,
      );
      if (failedBefore.run(id, ...from).changes === 1) {
        changeReply(id, 'drop');
        return true;
      }
      return sql(`DELETE FROM usdc_payments ${where}`).run(id, ...from).changes === 1;
    },
    ...createReplyWrites(sql, changeReply),
  };
}

/** The writes of kept replies that change no state. */
function createReplyWrites(
  sql: ReturnType<typeof createStatements>,
  changeReply: (id: string, reply: ReplyChange) => void,
) {
  return {
    takeReply: (id: string, max: number, now: number): Uint8Array | null => {
      const row = sql('SELECT body FROM usdc_replies WHERE payment_id = ? AND keep_until > ?').get(id, now);
      if (!row) return null;
      const counted = sql(
        "UPDATE usdc_payments SET deliveries = deliveries + 1 WHERE id = ? AND state = 'settled' AND deliveries < ?",
      ).run(id, max);
      return counted.changes === 1 ? (row as { body: Uint8Array }).body : null;
    },
    delivered: (id: string, now: number, keepUntil: number): boolean => {
      const noted = sql(
        "UPDATE usdc_payments SET delivered_at = ? WHERE id = ? AND state = 'settled' AND delivered_at IS NULL",
      );
      if (noted.run(now, id).changes !== 1) return false;
      changeReply(id, { keepUntil });
      return true;
    },
    trimReplies: (from: number, to: number, bytes: number): number => sql(TRIM).run({ from, to, bytes }).changes,
    purgeReplies: (now: number): number => sql('DELETE FROM usdc_replies WHERE keep_until <= ?').run(now).changes,
  };
}
