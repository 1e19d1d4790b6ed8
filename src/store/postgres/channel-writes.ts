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
import { type ChannelRow, channelFromRow, parseAfter } from '../channel-row.ts';
import { statement } from '../db/connections.ts';
import { HOLDS_LEASE } from '../db/postgres.ts';
import type { Write } from '../db/write-queue.ts';
import type { ChannelConfig, ChannelState } from '../ports/channel-state.ts';
import type { Channel, NewOperation, OperationEnd, RefundTerms, VoucherSale } from '../ports/channels.ts';
import type { ChannelAfter } from '../ports/payments.ts';
import { afterWith } from './channel-sql.ts';

type ChannelTerms = ChannelConfig & { readonly id: Uint8Array; readonly network: string };

/** Reads a channel. */
export const GET_CHANNEL = statement<{ id: Uint8Array }>('SELECT * FROM channels WHERE id = @id');

// The sale has the guard of a charge. The unique indexes refuse a second sale of the voucher, and another payment's identifier. A place only orders
// open payments.
const CHARGE = statement<
  Omit<VoucherSale, 'channel'> & ReturnType<typeof voucherValues> & { body: Uint8Array; keepUntil: number }
>(`
  WITH sale AS (
    INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after, valid_before,
                               authorization_hash, request_hash, price, charged, client_hash, identifier_hash, reserved_at, ended_at,
                               route, protocol, channel_id, voucher_max, channel_after, place)
    SELECT @id::text, @network::text, @contract::bytea, @payer::bytea, @nonce::bytea, 'settled', @bootId::text, @amount::numeric,
           @payTo::bytea, @validAfter::numeric, @validBefore::numeric, @authorizationHash::bytea, @requestHash::bytea, @price::numeric,
           @price::numeric, @clientHash::bytea, @identifierHash::bytea, @reservedAt::bigint, @reservedAt::bigint,
           @route::text, @protocol::text, @channelId::bytea, @voucherMax::numeric, ${afterWith('balance')}, 0
      FROM channels
     WHERE channels.id = @channelId::bytea AND charged = @voucherMax::numeric - @price::numeric
       AND @voucherMax::numeric <= balance - withdraw_amount AND ${IS_SOLD_ON}
       AND NOT ${OPEN_SALE} AND NOT ${OPEN_REFUND}
    ON CONFLICT DO NOTHING
    RETURNING id, channel_after),
  charge AS (
    UPDATE channels SET charged = @voucherMax::numeric, signature = @voucherSignature::bytea, used_at = greatest(used_at, @reservedAt::bigint),
                        unclaimed_since = coalesce(unclaimed_since, @reservedAt::bigint)
     WHERE id = @channelId::bytea AND EXISTS (SELECT 1 FROM sale)),
  reply AS (INSERT INTO usdc_replies (payment_id, body, keep_until) SELECT id, @body::bytea, @keepUntil::bigint FROM sale)
  SELECT channel_after FROM sale`);

// What was claimed was charged, by this ledger or by one that is lost: then no voucher over the whole sum is known.
const NOTE_STATE = statement<ReturnType<typeof channelValues>>(`
  INSERT INTO channels (id, network, payer, payer_authorizer, receiver, receiver_authorizer, token, withdraw_delay, salt, charged, written_off,
                        balance, total_claimed, withdraw_amount, withdraw_at, refund_nonce, state_block,
                        confirmed_block, read_at, used_at)
  VALUES (@id::bytea, @network, @payer, @payerAuthorizer, @receiver, @receiverAuthorizer, @token, @withdrawDelay, @salt,
          @totalClaimed::numeric, 0, @balance, @totalClaimed::numeric, @withdrawAmount, @withdrawAt, @refundNonce,
          @block::bigint, @block::bigint, @now::bigint, @now::bigint)
  ON CONFLICT (id) DO UPDATE
     SET charged = greatest(channels.charged, excluded.total_claimed),
         signature = CASE WHEN excluded.total_claimed > channels.charged THEN NULL ELSE channels.signature END,
         written_off = least(channels.written_off, greatest(channels.charged, excluded.total_claimed) - excluded.total_claimed),
         balance = excluded.balance, total_claimed = excluded.total_claimed, withdraw_amount = excluded.withdraw_amount,
         withdraw_at = excluded.withdraw_at, refund_nonce = excluded.refund_nonce, state_block = excluded.state_block, read_at = excluded.read_at,
         confirmed_block = excluded.state_block,
         deposit_block = CASE WHEN channels.deposit_block > excluded.state_block + ${MOST_AHEAD} THEN 0
                              ELSE channels.deposit_block END,
         refused_at = CASE WHEN channels.charged - excluded.total_claimed > channels.written_off
                           THEN channels.refused_at END,
         unclaimed_since = CASE WHEN channels.charged - excluded.total_claimed > channels.written_off THEN coalesce(
           (SELECT ended_at FROM usdc_payments
             WHERE channel_id = channels.id AND voucher_max > excluded.total_claimed AND state <> 'failed' AND ended_at IS NOT NULL
             ORDER BY voucher_max LIMIT 1), channels.unclaimed_since, excluded.read_at) END
   WHERE excluded.state_block >= greatest(channels.state_block, channels.deposit_block)
      OR greatest(channels.state_block, channels.deposit_block) > excluded.state_block + ${MOST_AHEAD}
      OR channels.confirmed_block IS DISTINCT FROM channels.state_block`);
const WRITE_OFF = statement<{ id: Uint8Array; amount: bigint; upTo: bigint }>(`
  UPDATE channels SET written_off = written_off + @amount::numeric,
                      refused_at = CASE WHEN total_claimed + written_off + @amount::numeric < charged
                                        THEN refused_at END,
                      unclaimed_since = CASE WHEN total_claimed + written_off + @amount::numeric < charged THEN unclaimed_since END
   WHERE id = @id AND charged = @upTo::numeric AND @amount::numeric >= 0 AND total_claimed + written_off + @amount::numeric <= charged`);
const REFUSE_CLAIM = statement<{ id: Uint8Array; now: number }>(`
  UPDATE channels SET refused_at = coalesce(refused_at, @now::bigint) WHERE id = @id AND unclaimed_since IS NOT NULL`);

const PRUNE_UNUSED = statement<{ beforeMs: number; limit: number }>(PRUNE);

const BEGIN = statement<NewOperation & ReturnType<typeof refundValues>>(`
  INSERT INTO channel_operations (id, network, kind, channel_id, amount, calldata, state, created_at)
  SELECT @id::text, @network::text, @kind::text, @channelId::bytea, @amount::numeric, @calldata::bytea, 'open', @createdAt::bigint
   WHERE @kind::text <> 'refund'
      OR (EXISTS (SELECT 1 FROM channels WHERE id = @channelId AND charged = @charged::numeric)
          AND NOT ${OPEN_SALE} AND NOT ${OPEN_REFUND} AND NOT ${RECENT_REFUND})`);
const END = statement<ReturnType<typeof endValues>>(`
  UPDATE channel_operations
     SET state = @state, amount = coalesce(@amount::numeric, amount), transaction_hash = coalesce(@transaction::bytea, transaction_hash),
         reason = @reason, ended_at = @endedAt, calldata = NULL
   WHERE id = @id AND state = 'open'`);
// No transaction is broadcast without this note. So an instance that has lost the lease broadcasts nothing any more.
const NOTE_BROADCAST = statement<{ ids: string[]; transactions: Uint8Array[]; fencingToken: number | null }>(`
  UPDATE channel_operations SET transaction_hash = noted.transaction_hash
    FROM ROWS FROM (unnest(@ids::text[]), unnest(@transactions::bytea[])) AS noted (id, transaction_hash)
   WHERE channel_operations.id = noted.id AND state = 'open' AND ${HOLDS_LEASE}
  RETURNING channel_operations.id`);

const changedOne: Write<boolean>['read'] = ([result]) => result?.rowCount === 1;

/** The port's writes as statements. Each guard stands in the statement that changes the row, so no two callers pass it. */
export const channelWrites = {
  note: (channel: ChannelTerms, state: ChannelState, now: number): Write<Channel> => ({
    statements: [NOTE_STATE(channelValues(channel, state, now)), GET_CHANNEL({ id: channel.id })],
    read: ([, noted]) => channelFromRow(noted?.rows[0] as ChannelRow),
  }),
  charge: (sale: VoucherSale, body: Uint8Array, keepUntil: number): Write<ChannelAfter | null> => ({
    statements: [CHARGE({ ...sale, ...voucherValues(sale.channel), body, keepUntil })],
    read: ([sold]) => {
      const row: { channel_after: string } | undefined = sold?.rows[0];
      return row ? parseAfter(row.channel_after) : null;
    },
  }),
  writeOff: (id: Uint8Array, amount: bigint, upTo: bigint): Write<boolean> => ({
    statements: [WRITE_OFF({ id, amount, upTo })],
    read: changedOne,
  }),
  refuseClaim: (id: Uint8Array, now: number): Write<void> => ({
    statements: [REFUSE_CLAIM({ id, now })],
    read: () => {},
  }),
  prune: (beforeMs: number, limit: number): Write<number> => ({
    statements: [PRUNE_UNUSED({ beforeMs, limit })],
    read: ([pruned]) => pruned?.rowCount ?? 0,
  }),
  begin: (operation: NewOperation, terms: RefundTerms | undefined): Write<boolean> => ({
    statements: [BEGIN({ ...operation, ...refundValues(terms) })],
    read: changedOne,
  }),
  noteBroadcast: (
    entries: readonly { id: string; transaction: Uint8Array }[],
    fencingToken: number | null,
  ): Write<ReadonlySet<string>> => ({
    statements: [
      NOTE_BROADCAST({
        ids: entries.map(({ id }) => id),
        transactions: entries.map((e) => e.transaction),
        fencingToken,
      }),
    ],
    read: ([noted]) => new Set(noted?.rows.map(({ id }) => id)),
  }),
  end: (id: string, end: OperationEnd): Write<boolean> => ({ statements: [END(endValues(id, end))], read: changedOne }),
};
