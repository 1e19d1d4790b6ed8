import type { Call, LedgerDatabase, Sql, Step } from './db/port.ts';
import { changedOne, changes, greatest, onlyRow, sql } from './db/sql.ts';
import type { ChannelCharge } from './ports/channel-state.ts';
import type {
  ChannelAfter,
  LedgerStore,
  NewPayment,
  Payment,
  PaymentChange,
  PaymentKey,
  PaymentState,
  ReplyChange,
  SettledReads,
  SettledSum,
} from './ports/payments.ts';

// Payments, from their reservation to their end:
// 1. A reservation inserts the row, under the conditions of `reserve`.
// 2. Moves change its state. What follows from a move (the reply, a channel's charge, a transfer of the Gateway)
//    follows in the same statement.
// 3. Broadcasts are noted before they are sent. A reservation without a broadcast can be released.
// 4. Replies are kept, delivered and deleted.
// 5. What was earned is summed up by the time of settlement.
// Each guard stands in the statement that changes the row, so no two callers pass it.

/**
 * The open states, in SQL. A payment in one of them may still end in a transfer, so it counts against the payer's
 * balance.
 */
export const OPEN = "('reserved', 'settling', 'unknown')";

/**
 * What a payment earns, in SQL: at a sale in a channel what was charged, or the price before that. The amount of such a
 * sale may be a deposit, and the rest of a deposit stays the payer's.
 */
export const EARNED = 'CASE WHEN channel_id IS NULL THEN amount ELSE coalesce(charged, price) END';

// --- A payment's row

/** Selects payments, as `paymentOf` reads them. */
export const SELECT_PAYMENT = `
  SELECT id, network, contract, payer, nonce, state, boot_id AS "bootId", amount, pay_to AS "payTo",
         valid_after AS "validAfter", valid_before AS "validBefore", signature,
         authorization_hash AS "authorizationHash", request_hash AS "requestHash", price, charged,
         payer_has_code = 1 AS "payerHasCode", client_hash AS "clientHash", identifier_hash AS "identifierHash",
         checked_block AS "checkedBlock", transaction_hash AS "transaction", block, reason,
         reserved_at AS "reservedAt", ended_at AS "endedAt", deliveries, delivered_at AS "deliveredAt", calldata,
         protocol, channel_id AS "channelId", voucher_max AS "voucherMax", channel_after AS "channelAfter"
    FROM usdc_payments`;

/** What a statement over SELECT_PAYMENT returns. */
export type PaymentRow = Omit<Payment, 'channel'> &
  Readonly<{ channelAfter: string | null }> &
  Readonly<{ channelId: Uint8Array; voucherMax: bigint } | { channelId: null; voucherMax: null }>;

export function paymentOf({ channelId, voucherMax, channelAfter, ...payment }: PaymentRow): Payment {
  if (channelId === null) return { ...payment, channel: null };
  const after = channelAfter === null ? null : parseAfter(channelAfter);
  return { ...payment, channel: { channelId, max: voucherMax, after } };
}

// An expression, so that a row whose key is given is not looked for in the index of settled payments: PostgreSQL plans
// that while the ledger is empty, and goes through all of them then.
const IS_SETTLED = "coalesce(state, '') = 'settled'";

const FIND = sql<PaymentKey, PaymentRow>(
  `${SELECT_PAYMENT} WHERE network = @network AND contract = @contract AND payer = @payer AND nonce = @nonce`,
);
const GET = sql<{ id: string }, PaymentRow>(`${SELECT_PAYMENT} WHERE id = @id`);
const BY_HASH = sql<{ hash: Uint8Array; limit: number }, PaymentRow>(`
  ${SELECT_PAYMENT} WHERE nonce = @hash UNION ${SELECT_PAYMENT} WHERE transaction_hash = @hash ORDER BY id LIMIT @limit`);
const BY_IDENTIFIER = sql<{ identifierHash: Uint8Array }, PaymentRow>(
  `${SELECT_PAYMENT} WHERE identifier_hash = @identifierHash AND state <> 'failed'`,
);
// The states are in the text: for unknown ones PostgreSQL plans to go through all payments by id, and the open ones are
// the last.
const byState = (states: readonly PaymentState[]) =>
  sql<{ after: string; limit: number }, PaymentRow>(
    `${SELECT_PAYMENT} WHERE state IN (${states.map((one) => `'${one}'`).join(', ')}) AND id > @after
      ORDER BY id LIMIT @limit`,
  );
const LEFT_BEHIND = sql<{ living: readonly string[]; after: string; limit: number }, PaymentRow>(
  `${SELECT_PAYMENT} WHERE state IN ${OPEN} AND boot_id NOT IN @living AND id > @after ORDER BY id LIMIT @limit`,
);
const SUM_OF_OPEN = sql<
  Omit<PaymentKey, 'nonce' | 'contract'> & { contracts: readonly Uint8Array[]; id: string },
  { sum: bigint }
>(`
  SELECT coalesce(sum(amount), 0) AS sum FROM usdc_payments
   WHERE network = @network AND contract IN @contracts AND payer = @payer AND id <> @id AND state IN ${OPEN}
     AND place < (SELECT place FROM usdc_payments WHERE id = @id)`);
const ANY_SETTLED = sql<Omit<PaymentKey, 'nonce'>, { one: number }>(`
  SELECT 1 AS one FROM usdc_payments
   WHERE network = @network AND contract = @contract AND payer = @payer AND ${IS_SETTLED} LIMIT 1`);
const COUNT = sql<object, { state: PaymentState; count: number }>(
  'SELECT state, count(*) AS count FROM usdc_payments GROUP BY state',
);

// --- A sale in a channel

/** Conditions in SQL over `@channelId`. A channel with such a row takes no other sale. */
export const OPEN_SALE = `EXISTS (SELECT 1 FROM usdc_payments WHERE channel_id = @channelId AND state IN ${OPEN})`;
export const OPEN_REFUND = "EXISTS (SELECT 1 FROM channel_operations WHERE channel_id = @channelId AND state = 'open')";

/** The values of a sale's part in a channel: all null outside of channels. */
export const voucherValues = (channel: ChannelCharge | null | undefined) => ({
  channelId: channel?.channelId ?? null,
  voucherMax: channel?.max ?? null,
  voucherSignature: channel?.signature ?? null,
});

/**
 * A channel's state as JSON, for `channel_after`, with this expression as its balance. Amounts are text, because JSON's
 * numbers are not exact.
 */
export const afterWith = (balance: string): string =>
  `'{"balance":"' || CAST(${balance} AS TEXT) || '","totalClaimed":"' || CAST(total_claimed AS TEXT)
     || '","withdrawAmount":"' || CAST(withdraw_amount AS TEXT) || '","withdrawAt":' || CAST(withdraw_at AS TEXT)
     || ',"refundNonce":"' || CAST(refund_nonce AS TEXT) || '"}'`;

/** Reads what `afterWith` made. */
export function parseAfter(json: string): ChannelAfter {
  const { balance, totalClaimed, withdrawAmount, withdrawAt, refundNonce } = JSON.parse(json) as {
    [Name in keyof ChannelAfter]: ChannelAfter[Name] extends bigint ? string : number;
  };
  return {
    balance: BigInt(balance),
    totalClaimed: BigInt(totalClaimed),
    withdrawAmount: BigInt(withdrawAmount),
    withdrawAt,
    refundNonce: BigInt(refundNonce),
  };
}

// --- 1. Reservations

/** The columns of a new payment apart from its state, and their values. */
export const NEW_COLUMNS = `id, network, contract, payer, nonce, boot_id, amount, pay_to, valid_after, valid_before,
    authorization_hash, request_hash, price, client_hash, identifier_hash, reserved_at, route, protocol,
    channel_id, voucher_max`;
export const NEW_VALUES = `@id::text, @network::text, @contract::bytea, @payer::bytea, @nonce::bytea, @bootId::text,
    @amount::numeric, @payTo::bytea, @validAfter::numeric, @validBefore::numeric, @authorizationHash::bytea,
    @requestHash::bytea, @price::numeric, @clientHash::bytea, @identifierHash::bytea, @reservedAt::bigint,
    @route::text, @protocol::text, @channelId::bytea, @voucherMax::numeric`;
export type NewValues = Omit<NewPayment, 'channel'> & ReturnType<typeof voucherValues>;

// A failed row holds no identifier. The condition is that of the unique index.
// A place is free again when its payment has ended. A new place only has to come after those of all open payments. With
// max() alone SQLite would compile the statement again for each run, because it takes a row of a partial index.
const RESERVE = sql<NewValues & { maxOpen: number; reusableReason: string | null }>(`
  INSERT INTO usdc_payments (${NEW_COLUMNS}, state, voucher_signature, place)
  SELECT ${NEW_VALUES}, 'reserved', @voucherSignature::bytea,
         (SELECT coalesce(max(place), 0) + 1 + 0 * count(*) FROM usdc_payments
           WHERE payer = @payer::bytea AND state IN ${OPEN})
   WHERE (@maxOpen::bigint = 0
      OR (SELECT count(*) FROM usdc_payments WHERE payer = @payer::bytea AND state IN ${OPEN}) < @maxOpen::bigint)
     AND NOT EXISTS (SELECT 1 FROM usdc_payments WHERE identifier_hash = @identifierHash::bytea AND state <> 'failed')
     AND (@channelId::bytea IS NULL
      OR (EXISTS (SELECT 1 FROM channels WHERE id = @channelId) AND NOT ${OPEN_SALE} AND NOT ${OPEN_REFUND}
          AND NOT EXISTS (SELECT 1 FROM usdc_payments
                           WHERE channel_id = @channelId AND voucher_max = @voucherMax AND state <> 'failed')))
  ON CONFLICT (network, contract, payer, nonce) DO UPDATE
     SET id = excluded.id, state = 'reserved', boot_id = excluded.boot_id, request_hash = excluded.request_hash,
         price = excluded.price, identifier_hash = excluded.identifier_hash, reserved_at = excluded.reserved_at,
         route = excluded.route, protocol = excluded.protocol, place = excluded.place,
         transaction_hash = NULL, block = NULL, ended_at = NULL, channel_id = excluded.channel_id,
         voucher_max = excluded.voucher_max, voucher_signature = excluded.voucher_signature
   WHERE usdc_payments.state = 'failed' AND usdc_payments.reason = @reusableReason::text
     AND usdc_payments.authorization_hash = excluded.authorization_hash`);

// --- 2. Moves

/** The column of each field that a move may change. */
const CHANGE_COLUMNS: Record<keyof PaymentChange, string> = {
  bootId: 'boot_id',
  signature: 'signature',
  calldata: 'calldata',
  checkedBlock: 'checked_block',
  payerHasCode: 'payer_has_code',
  charged: 'charged',
  transaction: 'transaction_hash',
  block: 'block',
  reason: 'reason',
  settlingAt: 'settling_at',
  endedAt: 'ended_at',
};

const REPLIES = {
  drop: 'DELETE FROM usdc_replies USING done WHERE payment_id = done.id',
  store: 'INSERT INTO usdc_replies (payment_id, body) SELECT done.id, @store::bytea FROM done',
  keep: 'UPDATE usdc_replies SET keep_until = @keepUntil::bigint FROM done WHERE payment_id = done.id',
};

/** The length by which a transfer of the Gateway is recognised. */
const TRANSFER_BYTES = 16;
const ACCEPT_TRANSFER = `
  INSERT INTO gateway_transfers (payment_id, transfer_id, next_check_at)
  SELECT done.id, done.transaction_hash, 0 FROM done WHERE length(done.transaction_hash) = ${TRANSFER_BYTES}`;
// The deposit of a state that was read at the deposit's block or later is in the noted balance already.
const CHARGE_AFTER_DEPOSIT = `
  UPDATE channels
     SET balance = balance + CASE WHEN state_block < done.block THEN done.amount ELSE 0 END,
         deposit_block = ${greatest('deposit_block', 'coalesce(done.block, 0)')},
         charged = ${greatest('charged', 'done.voucher_max')},
         signature = CASE WHEN done.voucher_max > charged THEN done.voucher_signature ELSE signature END,
         used_at = ${greatest('used_at', 'coalesce(done.ended_at, done.reserved_at)')},
         unclaimed_since = CASE WHEN done.voucher_max > charged
                                THEN coalesce(unclaimed_since, done.ended_at, done.reserved_at)
                                ELSE unclaimed_since END
    FROM done WHERE channels.id = done.channel_id`;
// The channel gets the voucher's signature from the row that the move returns. So another statement wipes it.
const WIPE_VOUCHER = sql<{ id: string }>(`
  UPDATE usdc_payments SET voucher_signature = NULL
   WHERE id = @id AND ${IS_SETTLED} AND voucher_signature IS NOT NULL`);

/** What a settlement sets over the change. At a sale in a channel, what was charged is the price. */
function settledSets(change: PaymentChange): Record<string, string> {
  const charged = change.charged === undefined ? 'charged' : '@charged::numeric';
  const block = change.block === undefined ? 'usdc_payments.block' : '@block::bigint';
  const balance = `balance + CASE WHEN state_block < ${block} THEN usdc_payments.amount ELSE 0 END`;
  return {
    calldata: 'NULL',
    charged: `CASE WHEN channel_id IS NULL THEN ${charged} ELSE price END`,
    channel_after: `(SELECT ${afterWith(balance)} FROM channels WHERE channels.id = usdc_payments.channel_id)`,
  };
}

type Moved = { id: string };
/** One statement for each set of columns and each change of the reply. */
type Moves = Map<string, Sql<object, Moved>>;

function moveTo(
  moves: Moves,
  to: PaymentState,
  change: PaymentChange,
  reply: keyof typeof REPLIES | null,
): Sql<object, Moved> {
  const fields = Object.keys(change) as (keyof PaymentChange)[];
  const isSettled = to === 'settled';
  const mayAccept = isSettled && (change.transaction === undefined || change.transaction?.length === TRANSFER_BYTES);
  const key = `${to} ${reply} ${mayAccept} ${fields.join()}`;
  const known = moves.get(key);
  if (known) return known;
  const sets = Object.fromEntries(fields.map((field) => [CHANGE_COLUMNS[field], `@${field}`]));
  if (isSettled) Object.assign(sets, settledSets(change));
  if (to === 'failed') Object.assign(sets, { calldata: 'NULL', voucher_signature: 'NULL' });
  const set = Object.entries({ state: '@to', ...sets }).map((one) => one.join(' = '));
  const ofSale = ', transaction_hash, block, amount, channel_id, voucher_max, voucher_signature, ended_at, reserved_at';
  const made = sql<object, Moved>(
    `UPDATE usdc_payments SET ${set.join(', ')}
      WHERE id = @id AND state IN @from AND {HOLDS_LEASE} RETURNING id${isSettled ? ofSale : ''}`,
    [
      ...(reply ? [REPLIES[reply]] : []),
      ...(mayAccept ? [ACCEPT_TRANSFER] : []),
      ...(isSettled ? [CHARGE_AFTER_DEPOSIT] : []),
    ],
    ['id'],
  );
  moves.set(key, made);
  return made;
}

function move(
  moves: Moves,
  values: { id: string; from: readonly PaymentState[]; to: PaymentState; fencingToken: number | undefined },
  change: PaymentChange,
  reply: ReplyChange | undefined,
): Step<boolean> {
  const { id, to } = values;
  const kind = !reply ? null : reply === 'drop' ? reply : 'store' in reply ? 'store' : 'keep';
  // PostgreSQL takes no boolean for a column of 0 and 1.
  const columns = { ...change, payerHasCode: Number(change.payerHasCode) };
  const call = moveTo(moves, to, change, kind)({ ...columns, ...(reply === 'drop' ? {} : reply), ...values });
  return { calls: to === 'settled' ? [call, WIPE_VOUCHER({ id })] : [call], read: changedOne };
}

// --- 3. Broadcasts

// No transaction is broadcast without this note. So an instance that has lost the lease broadcasts nothing any more.
const NOTE = sql<{
  id: string;
  transaction: Uint8Array;
  where: readonly PaymentState[];
  fencingToken: number | undefined;
}>('UPDATE usdc_payments SET transaction_hash = @transaction WHERE id = @id AND state IN @where AND {HOLDS_LEASE}');

/** Notes each entry by a call of its own, and reads which rows took theirs. */
export function noteEach<Entry extends { readonly id: string }>(
  entries: readonly Entry[],
  note: (entry: Entry) => Call,
): Step<ReadonlySet<string>> {
  return {
    calls: entries.map(note),
    read: (results) => new Set(entries.filter((_, at) => changedOne(results.slice(at))).map(({ id }) => id)),
  };
}

// A row satisfies at most one of these two.
const RELEASABLE = 'id = @id AND state IN @from AND transaction_hash IS NULL';
const RELEASE_FAILED = sql<{ id: string; from: readonly PaymentState[] }, { id: string }>(
  `UPDATE usdc_payments SET state = 'failed', signature = NULL, calldata = NULL, voucher_signature = NULL
    WHERE ${RELEASABLE} AND reason IS NOT NULL RETURNING id`,
  [REPLIES.drop],
);
const RELEASE = sql<{ id: string; from: readonly PaymentState[] }>(
  `DELETE FROM usdc_payments WHERE ${RELEASABLE} AND reason IS NULL`,
);

// --- 4. Replies

const TAKE_REPLY = sql<{ id: string; max: number; now: number }, { body: Uint8Array }>(`
  UPDATE usdc_payments SET deliveries = deliveries + 1
   WHERE id = @id AND ${IS_SETTLED} AND deliveries < @max
     AND EXISTS (SELECT 1 FROM usdc_replies WHERE payment_id = @id AND keep_until > @now)
  RETURNING (SELECT body FROM usdc_replies WHERE payment_id = usdc_payments.id) AS body`);
const DELIVERED = sql<{ id: string; now: number; keepUntil: number }, { id: string }>(
  `UPDATE usdc_payments SET delivered_at = @now
    WHERE id = @id AND ${IS_SETTLED} AND delivered_at IS NULL RETURNING id`,
  [REPLIES.keep],
);
// Counts from the newest reply, so the oldest are deleted.
const TRIM = sql<{ from: number; to: number; bytes: number }>(`
  DELETE FROM usdc_replies WHERE payment_id IN (
    SELECT payment_id FROM (
      SELECT payment_id, sum(length(body)) OVER (ORDER BY keep_until DESC, payment_id DESC) AS newest FROM usdc_replies
       WHERE keep_until > @from::bigint AND keep_until <= @to::bigint) AS kept
     WHERE newest > @bytes::bigint)`);
/** The most replies that one statement deletes, so that no transaction is long. */
const PURGE_CHUNK = 500;
const PURGE = sql<{ now: number }>(`
  DELETE FROM usdc_replies WHERE payment_id IN (
    SELECT payment_id FROM usdc_replies WHERE keep_until <= @now ORDER BY keep_until LIMIT ${PURGE_CHUNK})`);
const REPLY_BYTES = sql<object, { bytes: number }>('SELECT coalesce(sum(length(body)), 0) AS bytes FROM usdc_replies');

/** Counts the bytes of replies that wait to be written, so that a sum over the kept replies includes them. */
export interface WaitingBytes {
  read(): number;
  /** Counts `bytes` until the write has ended, also when it rejects. */
  during<T>(bytes: number, write: () => Promise<T>): Promise<T>;
}

/** A counter for all stores of one database whose writes keep replies. */
export function createWaitingBytes(): WaitingBytes {
  let waiting = 0;
  return {
    read: () => waiting,
    during: async (bytes, write) => {
      waiting += bytes;
      try {
        return await write();
      } finally {
        waiting -= bytes;
      }
    },
  };
}

const storedBytes = (reply: ReplyChange | undefined): number =>
  reply !== undefined && reply !== 'drop' && 'store' in reply ? reply.store.length : 0;

// --- 5. What was earned

type Span = { from: number; to: number };
type Sum = Omit<SettledSum, 'rail'>;
const SETTLED = sql<Span, Sum>(`
  SELECT contract, count(*) AS count, sum(${EARNED}) AS amount FROM usdc_payments
   WHERE state = 'settled' AND ended_at >= @from AND ended_at < @to GROUP BY contract ORDER BY contract`);
const CLAIMED = sql<Span, Sum>(`
  SELECT NULL AS contract, count(*) AS count, coalesce(sum(CAST(amount_msat AS NUMERIC)), 0) AS amount
    FROM lightning_claims WHERE request_hash IS NOT NULL AND claimed_at >= @from AND claimed_at < @to`);

export function createSettledReads(db: LedgerDatabase): SettledReads {
  return {
    settledBetween: async (from, to) => {
      const [settled, claimed] = await Promise.all([db.read(SETTLED({ from, to })), db.read(CLAIMED({ from, to }))]);
      return [
        ...settled.map((row) => ({ ...row, rail: 'usdc' as const })),
        ...claimed.map((row) => ({ ...row, rail: 'lightning' as const })),
      ];
    },
  };
}

/**
 * The payments of a ledger. `waiting` counts the replies that wait to be written by all stores of its database. `whole`
 * pings and closes the database.
 */
export function createLedgerStore(
  db: LedgerDatabase,
  waiting: WaitingBytes,
  whole: Pick<LedgerStore, 'ping' | 'close'>,
): LedgerStore {
  const moves: Moves = new Map();
  const write = <T>(step: Step<T>): Promise<T> => db.write('payments', step);
  const one = (call: Call): Promise<boolean> => write({ calls: [call], read: changedOne });
  const all = async (call: Call<PaymentRow>): Promise<Payment[]> => (await db.read(call)).map(paymentOf);
  const find = async (call: Call<PaymentRow>): Promise<Payment | null> => (await all(call))[0] ?? null;

  return {
    find: (key) => find(FIND(key)),
    get: (id) => find(GET({ id })),
    findByHash: (hash, limit) => all(BY_HASH({ hash, limit })),
    findByIdentifier: (identifierHash) => find(BY_IDENTIFIER({ identifierHash })),
    listByState: (states, limit, after = '') => all(byState(states)({ limit, after })),
    listLeftBehind: (living, limit, after = '') => all(LEFT_BEHIND({ living, limit, after })),
    sumOfOpen: async ({ network, contract, payer }, id, contracts = [contract]) =>
      (await onlyRow(db, SUM_OF_OPEN({ network, contracts, payer, id }))).sum,
    hasSettled: async (payer) => (await db.read(ANY_SETTLED(payer))).length > 0,
    countByState: async () => {
      const counts: Record<PaymentState, number> = { reserved: 0, settling: 0, unknown: 0, settled: 0, failed: 0 };
      for (const { state, count } of await db.read(COUNT({}))) counts[state] = count;
      return counts;
    },
    reserve: (payment, maxOpen, reusableReason) =>
      one(RESERVE({ ...payment, ...voucherValues(payment.channel), maxOpen, reusableReason })),
    move: (id, from, to, change, reply, fencingToken) =>
      waiting.during(storedBytes(reply), () => write(move(moves, { id, from, to, fencingToken }, change, reply))),
    noteBroadcast: (entries, where, fencingToken) =>
      write(noteEach(entries, ({ id, transaction }) => NOTE({ id, transaction, where, fencingToken }))),
    release: (id, from) =>
      write({
        calls: [RELEASE_FAILED({ id, from }), RELEASE({ id, from })],
        read: (results) => results.some(({ changes }) => changes === 1),
      }),
    takeReply: (id, max, now) =>
      write({
        calls: [TAKE_REPLY({ id, max, now })],
        read: ([taken]) => (taken?.rows[0] as { body: Uint8Array } | undefined)?.body ?? null,
      }),
    // A buyer who got the answer waits for nothing. A note that a crash loses only keeps the reply for longer.
    delivered: (id, now, keepUntil) =>
      db.write('payments', { calls: [DELIVERED({ id, now, keepUntil })], read: changedOne }, 'canWait'),
    trimReplies: (from, to, bytes) => write({ calls: [TRIM({ from, to, bytes })], read: changes }),
    purgeReplies: async (now) => {
      for (let purged = 0; ; ) {
        const more = await write({ calls: [PURGE({ now })], read: changes });
        purged += more;
        if (more < PURGE_CHUNK) return purged;
      }
    },
    replyBytes: async () => {
      // A reply that is written while the sum is read is counted twice; otherwise it could be missed.
      const bytes = waiting.read();
      return (await onlyRow(db, REPLY_BYTES({}))).bytes + bytes;
    },
    ...whole,
  };
}
