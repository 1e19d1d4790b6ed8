import { TAKES_SALE, voucherValues } from '../channel-columns.ts';
import { statement } from '../db/connections.ts';
import { HOLDS_LEASE } from '../db/postgres.ts';
import type { Write } from '../db/write-queue.ts';
import { OPEN } from '../payment-columns.ts';
import type { NewPayment, PaymentChange, PaymentState, ReplyChange } from '../ports/payments.ts';
import { moveStatement, REPLIES } from './ledger-moves.ts';

// A failed row holds no identifier. The condition is that of the unique index, which decides between two concurrent reservations.
// A place is free again when its payment has ended. A new place only has to come after those of all open payments.
const RESERVE = statement<
  Omit<NewPayment, 'channel'> & ReturnType<typeof voucherValues> & { maxOpen: number; reusableReason: string | null }
>(`
  INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after, valid_before,
                             authorization_hash, request_hash, price, client_hash, identifier_hash, reserved_at, route, protocol,
                             channel_id, voucher_max, voucher_signature, place)
  SELECT @id::text, @network::text, @contract::bytea, @payer::bytea, @nonce::bytea, 'reserved', @bootId::text, @amount::numeric,
         @payTo::bytea, @validAfter::numeric, @validBefore::numeric, @authorizationHash::bytea, @requestHash::bytea, @price::numeric,
         @clientHash::bytea, @identifierHash::bytea, @reservedAt::bigint, @route::text, @protocol::text,
         @channelId::bytea, @voucherMax::numeric, @voucherSignature::bytea,
         (SELECT coalesce(max(place), 0) + 1 FROM usdc_payments WHERE payer = @payer::bytea AND state IN ${OPEN})
   WHERE (@maxOpen::bigint = 0
      OR (SELECT count(*) FROM usdc_payments WHERE payer = @payer::bytea AND state IN ${OPEN}) < @maxOpen::bigint)
     AND NOT EXISTS (SELECT 1 FROM usdc_payments WHERE identifier_hash = @identifierHash::bytea AND state <> 'failed')
     AND ${TAKES_SALE}
  ON CONFLICT (network, contract, payer, nonce) DO UPDATE
     SET id = excluded.id, state = 'reserved', boot_id = excluded.boot_id, request_hash = excluded.request_hash,
         price = excluded.price, identifier_hash = excluded.identifier_hash, reserved_at = excluded.reserved_at, route = excluded.route, protocol = excluded.protocol, place = excluded.place,
         transaction_hash = NULL, block = NULL, ended_at = NULL,
         channel_id = excluded.channel_id, voucher_max = excluded.voucher_max, voucher_signature = excluded.voucher_signature
   WHERE usdc_payments.state = 'failed' AND usdc_payments.reason = @reusableReason::text
     AND usdc_payments.authorization_hash = excluded.authorization_hash`);

// No transaction is broadcast without this note. So an instance that has lost the lease broadcasts nothing any more.
const NOTE = statement<{
  ids: string[];
  transactions: Uint8Array[];
  where: readonly PaymentState[];
  fencingToken: number | null;
}>(`
  UPDATE usdc_payments SET transaction_hash = noted.transaction_hash
    FROM ROWS FROM (unnest(@ids::text[]), unnest(@transactions::bytea[])) AS noted (id, transaction_hash)
   WHERE usdc_payments.id = noted.id AND state = ANY(@where::text[])
     AND ${HOLDS_LEASE}
  RETURNING usdc_payments.id`);

const RELEASABLE = 'id = @id AND state = ANY(@from::text[]) AND transaction_hash IS NULL';
const RELEASE_FAILED = statement<{ id: string; from: readonly PaymentState[] }>(`
  WITH moved AS (UPDATE usdc_payments SET state = 'failed', signature = NULL, calldata = NULL, voucher_signature = NULL
              WHERE ${RELEASABLE} AND reason IS NOT NULL RETURNING id),
       reply AS (${REPLIES.drop})
  SELECT id FROM moved`);
const RELEASE = statement<{ id: string; from: readonly PaymentState[] }>(
  `DELETE FROM usdc_payments WHERE ${RELEASABLE} AND reason IS NULL RETURNING id`,
);

const TAKE_REPLY = statement<{ id: string; max: number; now: number }>(`
  WITH counted AS (
    UPDATE usdc_payments SET deliveries = deliveries + 1
     WHERE id = @id AND state = 'settled' AND deliveries < @max
       AND EXISTS (SELECT 1 FROM usdc_replies WHERE payment_id = @id AND keep_until > @now)
    RETURNING id)
  SELECT body FROM usdc_replies WHERE payment_id IN (SELECT id FROM counted)`);

const DELIVERED = statement<{ id: string; now: number; keepUntil: number }>(`
  WITH moved AS (
    UPDATE usdc_payments SET delivered_at = @now WHERE id = @id AND state = 'settled' AND delivered_at IS NULL RETURNING id),
       reply AS (${REPLIES.keep})
  SELECT id FROM moved`);

// Counts from the newest reply, so the oldest are deleted.
const TRIM = statement<{ from: number; to: number; bytes: number }>(`
  DELETE FROM usdc_replies WHERE payment_id IN (
    SELECT payment_id FROM (
      SELECT payment_id, sum(length(body)) OVER (ORDER BY keep_until DESC, payment_id DESC) AS newest FROM usdc_replies
       WHERE keep_until > @from::bigint AND keep_until <= @to::bigint) AS kept
     WHERE newest > @bytes::bigint)`);

/** The most replies that one statement deletes, so that no transaction is long. */
export const PURGE_CHUNK = 500;
const PURGE = statement<{ now: number }>(`
  DELETE FROM usdc_replies WHERE payment_id IN (
    SELECT payment_id FROM usdc_replies WHERE keep_until <= @now ORDER BY keep_until LIMIT ${PURGE_CHUNK})`);

const changedOne: Write<boolean>['read'] = (results) => results.some(({ rowCount }) => rowCount === 1);

/** The port's writes as statements. Each guard stands in the statement that changes the row, so no two callers pass it. */
export const ledgerWrites = {
  reserve: (payment: NewPayment, maxOpen: number, reusableReason: string | null): Write<boolean> => ({
    statements: [RESERVE({ ...payment, ...voucherValues(payment.channel), maxOpen, reusableReason })],
    read: changedOne,
  }),
  move: (
    id: string,
    from: readonly PaymentState[],
    to: PaymentState,
    change: PaymentChange,
    reply: ReplyChange | undefined,
    fencingToken: number | null,
  ): Write<boolean> => {
    const body = reply && reply !== 'drop' && 'store' in reply ? { body: reply.store } : {};
    const keepUntil = reply && reply !== 'drop' && 'keepUntil' in reply ? { keepUntil: reply.keepUntil } : {};
    const { payerHasCode, ...rest } = change;
    const columns = payerHasCode === undefined ? rest : { ...rest, payerHasCode: Number(payerHasCode) };
    const values = { ...columns, ...body, ...keepUntil, id, from, to, fencingToken };
    return { statements: [moveStatement(to, change, reply, fencingToken !== null)(values)], read: changedOne };
  },
  noteBroadcast: (
    entries: readonly { id: string; transaction: Uint8Array }[],
    where: readonly PaymentState[],
    fencingToken: number | null,
  ): Write<ReadonlySet<string>> => ({
    statements: [
      NOTE({ ids: entries.map(({ id }) => id), transactions: entries.map((e) => e.transaction), where, fencingToken }),
    ],
    read: ([noted]) => new Set(noted?.rows.map(({ id }) => id)),
  }),
  // At most one of the two statements finds a row.
  release: (id: string, from: readonly PaymentState[]): Write<boolean> => ({
    statements: [RELEASE_FAILED({ id, from }), RELEASE({ id, from })],
    read: changedOne,
  }),
  takeReply: (id: string, max: number, now: number): Write<Uint8Array | null> => ({
    statements: [TAKE_REPLY({ id, max, now })],
    read: ([taken]) => taken?.rows[0]?.body ?? null,
  }),
  delivered: (id: string, now: number, keepUntil: number): Write<boolean> => ({
    statements: [DELIVERED({ id, now, keepUntil })],
    read: changedOne,
  }),
  trimReplies: (from: number, to: number, bytes: number): Write<number> => ({
    statements: [TRIM({ from, to, bytes })],
    read: ([trimmed]) => trimmed?.rowCount ?? 0,
  }),
  purgeReplies: (now: number): Write<number> => ({
    statements: [PURGE({ now })],
    read: ([purged]) => purged?.rowCount ?? 0,
  }),
};
