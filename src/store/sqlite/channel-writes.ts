import type { Sqlite } from '../../lib/sqlite-file.ts';
import {
  channelValues,
  endValues,
  IS_SOLD_ON,
  MOST_AHEAD,
  OPEN_REFUND,
  OPEN_SALE,
  PRUNE,
  RECENT_REFUND,
  refundValues,
  voucherValues,
} from '../channel-columns.ts';
import { parseAfter } from '../channel-row.ts';
import { createStatements } from '../db/sqlite.ts';
import type { ChannelConfig, ChannelState } from '../ports/channel-state.ts';
import type { NewOperation, OperationEnd, RefundTerms, VoucherSale } from '../ports/channels.ts';
import type { ChannelAfter } from '../ports/payments.ts';
import { AFTER } from './channel-sql.ts';

// The guard of a charge. It comes first, so that a refused charge has changed nothing. The unique indexes refuse a second sale of the voucher, and
// another payment's identifier.
const INSERT_SALE = `
  INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after, valid_before,
                             authorization_hash, request_hash, price, charged, client_hash, identifier_hash, reserved_at, ended_at,
                             route, protocol, channel_id, voucher_max, channel_after)
  SELECT @id, @network, @contract, @payer, @nonce, 'settled', @bootId, @amount, @payTo, @validAfter, @validBefore,
         @authorizationHash, @requestHash, @price, @price, @clientHash, @identifierHash, @reservedAt, @reservedAt,
         @route, @protocol, @channelId, @voucherMax, ${AFTER}
    FROM channels
   WHERE id = @channelId AND charged = @voucherMax - @price AND @voucherMax <= balance - withdraw_amount
     AND ${IS_SOLD_ON}
     AND NOT ${OPEN_SALE} AND NOT ${OPEN_REFUND}
  ON CONFLICT DO NOTHING
  RETURNING channel_after`;
const CHARGE = `
  UPDATE channels SET charged = @voucherMax, signature = @voucherSignature, used_at = max(used_at, @reservedAt),
                      unclaimed_since = coalesce(unclaimed_since, @reservedAt)
   WHERE id = @channelId`;
const KEEP_REPLY = 'INSERT INTO usdc_replies (payment_id, body, keep_until) VALUES (?, ?, ?)';

// What was claimed was charged, by this ledger or by one that is lost: then no voucher over the whole sum is known.
const INSERT_CHANNEL = `
  INSERT INTO channels (id, network, payer, payer_authorizer, receiver, receiver_authorizer, token, withdraw_delay, salt, charged, written_off,
                        balance, total_claimed, withdraw_amount, withdraw_at, refund_nonce, state_block,
                        confirmed_block, read_at, used_at)
  VALUES (@id, @network, @payer, @payerAuthorizer, @receiver, @receiverAuthorizer, @token, @withdrawDelay, @salt, @totalClaimed, 0,
          @balance, @totalClaimed, @withdrawAmount, @withdrawAt, @refundNonce, @block, @block, @now, @now)
  ON CONFLICT (id) DO UPDATE
     SET charged = max(charged, @totalClaimed),
         signature = CASE WHEN @totalClaimed > charged THEN NULL ELSE signature END,
         written_off = min(written_off, max(charged, @totalClaimed) - @totalClaimed),
         balance = @balance, total_claimed = @totalClaimed, withdraw_amount = @withdrawAmount, withdraw_at = @withdrawAt,
         refund_nonce = @refundNonce, state_block = @block, confirmed_block = @block, read_at = @now,
         deposit_block = CASE WHEN deposit_block > @block + ${MOST_AHEAD} THEN 0 ELSE deposit_block END,
         refused_at = CASE WHEN charged - @totalClaimed > written_off THEN refused_at END,
         unclaimed_since = CASE WHEN charged - @totalClaimed > written_off THEN coalesce(
           (SELECT ended_at FROM usdc_payments
             WHERE channel_id = channels.id AND voucher_max > @totalClaimed AND state <> 'failed' AND ended_at IS NOT NULL
             ORDER BY voucher_max LIMIT 1), unclaimed_since, @now) END
   WHERE @block >= max(state_block, deposit_block) OR max(state_block, deposit_block) > @block + ${MOST_AHEAD}
      OR confirmed_block IS NOT state_block`;
const WRITE_OFF = `
  UPDATE channels SET written_off = written_off + @amount,
                      refused_at = CASE WHEN total_claimed + written_off + @amount < charged THEN refused_at END,
                      unclaimed_since = CASE WHEN total_claimed + written_off + @amount < charged THEN unclaimed_since END
   WHERE id = @id AND charged = @upTo AND @amount >= 0 AND total_claimed + written_off + @amount <= charged`;

const REFUSE_CLAIM = `
  UPDATE channels SET refused_at = coalesce(refused_at, @now) WHERE id = @id AND unclaimed_since IS NOT NULL`;

const BEGIN = `
  INSERT INTO channel_operations (id, network, kind, channel_id, amount, calldata, state, created_at)
  SELECT @id, @network, @kind, @channelId, @amount, @calldata, 'open', @createdAt
   WHERE @kind <> 'refund'
      OR (EXISTS (SELECT 1 FROM channels WHERE id = @channelId AND charged = @charged) AND NOT ${OPEN_SALE} AND NOT ${OPEN_REFUND}
          AND NOT ${RECENT_REFUND})`;
const END = `
  UPDATE channel_operations SET state = @state, amount = coalesce(@amount, amount), transaction_hash = coalesce(@transaction, transaction_hash),
                                reason = @reason, ended_at = @endedAt, calldata = NULL
   WHERE id = @id AND state = 'open'`;
const NOTE_BROADCAST = "UPDATE channel_operations SET transaction_hash = ? WHERE id = ? AND state = 'open'";

/** The port's writes, synchronous. Call each inside a transaction that took the write lock when it began. */
export function createChannelWrites(db: Sqlite) {
  const sql = createStatements(db);
  return {
    note: (
      channel: ChannelConfig & { readonly id: Uint8Array; readonly network: string },
      state: ChannelState,
      now: number,
    ): void => {
      sql(INSERT_CHANNEL).run(channelValues(channel, state, now));
    },
    charge: (sale: VoucherSale, reply: Uint8Array, keepUntil: number): ChannelAfter | null => {
      const [validAfter, validBefore] = [String(sale.validAfter), String(sale.validBefore)];
      const values = { ...sale, ...voucherValues(sale.channel), validAfter, validBefore };
      const inserted = sql(INSERT_SALE).get(values) as { channel_after: string } | undefined;
      if (!inserted) return null;
      sql(CHARGE).run(values);
      sql(KEEP_REPLY).run(sale.id, reply, keepUntil);
      return parseAfter(inserted.channel_after);
    },
    writeOff: (id: Uint8Array, amount: bigint, upTo: bigint): boolean =>
      sql(WRITE_OFF).run({ id, amount, upTo }).changes === 1,
    refuseClaim: (id: Uint8Array, now: number): void => void sql(REFUSE_CLAIM).run({ id, now }),
    prune: (beforeMs: number, limit: number): number => sql(PRUNE).run({ beforeMs, limit }).changes,
    begin: (operation: NewOperation, terms: RefundTerms | undefined): boolean =>
      sql(BEGIN).run({ ...operation, ...refundValues(terms) }).changes === 1,
    noteBroadcast: (entries: readonly { id: string; transaction: Uint8Array }[]): ReadonlySet<string> => {
      const noted = entries.filter(({ id, transaction }) => sql(NOTE_BROADCAST).run(transaction, id).changes === 1);
      return new Set(noted.map(({ id }) => id));
    },
    end: (id: string, end: OperationEnd): boolean => sql(END).run(endValues(id, end)).changes === 1,
  };
}
