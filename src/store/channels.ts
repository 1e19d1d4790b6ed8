import type { Call, LedgerDatabase, Step } from './db/port.ts';
import { changedOne, changes, first, greatest, least, onlyRow, sql } from './db/sql.ts';
import {
  afterWith,
  NEW_COLUMNS,
  NEW_VALUES,
  type NewValues,
  noteEach,
  OPEN_REFUND,
  OPEN_SALE,
  type PaymentRow,
  parseAfter,
  paymentOf,
  SELECT_PAYMENT,
  voucherValues,
  type WaitingBytes,
} from './payments.ts';
import type { ChannelConfig, ChannelState } from './ports/channel-state.ts';
import type { Channel, ChannelOperation, ChannelStore, NewOperation, OperationEnd } from './ports/channels.ts';

// Payment channels: what the chain shows of them, what vouchers were charged, and what our relayer does with them.
// Their writes have the payments' turn, because the guards read the tables of both.

// --- A channel's row

const SELECT_CHANNEL = `
  SELECT id, network, payer, payer_authorizer AS "payerAuthorizer", receiver,
         receiver_authorizer AS "receiverAuthorizer", token, withdraw_delay AS "withdrawDelay", salt, charged,
         written_off AS "writtenOff", signature, balance, total_claimed AS "totalClaimed",
         withdraw_amount AS "withdrawAmount", withdraw_at AS "withdrawAt", refund_nonce AS "refundNonce",
         state_block AS block, confirmed_block IS NOT DISTINCT FROM state_block AS "isConfirmed",
         refused_at AS "claimRefusedAt", read_at AS "readAt", used_at AS "usedAt",
         unclaimed_since AS "unclaimedSince"
    FROM channels`;
type ChannelRow = Omit<Channel, 'state'> & ChannelState;

function channelOf(row: ChannelRow): Channel {
  const { balance, totalClaimed, withdrawAmount, withdrawAt, refundNonce, block, ...channel } = row;
  return { ...channel, state: { balance, totalClaimed, withdrawAmount, withdrawAt, refundNonce, block } };
}

type Page = { network: string; limit: number; after: Uint8Array };
const NO_BYTES = new Uint8Array();

const GET = sql<{ id: Uint8Array }, ChannelRow>(`${SELECT_CHANNEL} WHERE id = @id`);
const UNCLAIMED = sql<{ network: string; limit: number; since: number; id: Uint8Array }, ChannelRow>(`
  ${SELECT_CHANNEL}
   WHERE network = @network AND unclaimed_since IS NOT NULL AND (unclaimed_since, id) > (@since::bigint, @id::bytea)
   ORDER BY unclaimed_since, id LIMIT @limit`);
const CLAIMED = sql<Page, ChannelRow>(`
  ${SELECT_CHANNEL} WHERE network = @network AND total_claimed > 0 AND id > @after::bytea ORDER BY id LIMIT @limit`);
/**
 * Which channels the leader reads whatever their buyers do, in SQL over `@head`: those whose state no two providers
 * gave, and those whose last deposit is 20 blocks old and was not looked at since. The chain may have taken it back.
 * The first condition is that of an index (migration 021), so its text must stay.
 */
export const IS_TO_READ = `(confirmed_block IS DISTINCT FROM state_block OR confirmed_block < deposit_block + 20)
     AND (confirmed_block IS DISTINCT FROM state_block OR deposit_block + 20 <= @head)
     AND (balance > 0 OR unclaimed_since IS NOT NULL)`;
const TO_READ = sql<Page & { head: number }, ChannelRow>(
  `${SELECT_CHANNEL} WHERE network = @network AND id > @after::bytea AND ${IS_TO_READ} ORDER BY id LIMIT @limit`,
);
const ANY = sql<{ network: string }, { one: number }>('SELECT 1 AS one FROM channels WHERE network = @network LIMIT 1');
const REFUSED = sql<{ network: string }, { count: number }>(
  'SELECT count(*) AS count FROM channels WHERE network = @network AND refused_at IS NOT NULL',
);
const TOTALS = sql<{ network: string }, Totals>(`
  SELECT coalesce(sum(charged), 0) AS charged, coalesce(sum(total_claimed), 0) AS claimed,
         coalesce(sum(written_off), 0) AS "writtenOff"
    FROM channels WHERE network = @network`);
type Totals = Awaited<ReturnType<ChannelStore['totals']>>;
const OVERDUE = sql<{ network: string; beforeMs: number }, { sum: bigint }>(`
  SELECT coalesce(sum(charged - written_off - total_claimed), 0) AS sum FROM channels
   WHERE network = @network AND unclaimed_since < @beforeMs`);

// --- What the chain shows

/**
 * By how many blocks a noted state may be newer than one that providers confirm now: two minutes on Arc, because a read
 * may end late. One that is further ahead is of no block of this chain, and is replaced.
 */
const MOST_AHEAD = 240;
// What was claimed was charged, by this ledger or by one that is lost: then no voucher over the whole sum is known.
const CHARGED = greatest('channels.charged', 'excluded.total_claimed');
const NOTED = greatest('channels.state_block', 'channels.deposit_block');
const NOTE_STATE = sql<ReturnType<typeof channelValues>>(`
  INSERT INTO channels (id, network, payer, payer_authorizer, receiver, receiver_authorizer, token, withdraw_delay,
                        salt, charged, written_off, balance, total_claimed, withdraw_amount, withdraw_at, refund_nonce,
                        state_block, confirmed_block, read_at, used_at)
  VALUES (@id::bytea, @network, @payer, @payerAuthorizer, @receiver, @receiverAuthorizer, @token, @withdrawDelay,
          @salt, @totalClaimed::numeric, 0, @balance, @totalClaimed::numeric, @withdrawAmount, @withdrawAt,
          @refundNonce, @block::bigint, @block::bigint, @now::bigint, @now::bigint)
  ON CONFLICT (id) DO UPDATE
     SET charged = ${CHARGED},
         signature = CASE WHEN excluded.total_claimed > channels.charged THEN NULL ELSE channels.signature END,
         written_off = ${least('channels.written_off', `(${CHARGED}) - excluded.total_claimed`)},
         balance = excluded.balance, total_claimed = excluded.total_claimed,
         withdraw_amount = excluded.withdraw_amount, withdraw_at = excluded.withdraw_at,
         refund_nonce = excluded.refund_nonce, state_block = excluded.state_block,
         confirmed_block = excluded.state_block, read_at = excluded.read_at,
         deposit_block = CASE WHEN channels.deposit_block > excluded.state_block + ${MOST_AHEAD} THEN 0
                              ELSE channels.deposit_block END,
         refused_at = CASE WHEN channels.charged - excluded.total_claimed > channels.written_off
                           THEN channels.refused_at END,
         unclaimed_since = CASE WHEN channels.charged - excluded.total_claimed > channels.written_off THEN coalesce(
           (SELECT ended_at FROM usdc_payments
             WHERE channel_id = channels.id AND voucher_max > excluded.total_claimed AND state <> 'failed'
               AND ended_at IS NOT NULL
             ORDER BY voucher_max LIMIT 1), channels.unclaimed_since, excluded.read_at) END
   WHERE excluded.state_block >= ${NOTED} OR ${NOTED} > excluded.state_block + ${MOST_AHEAD}
      OR channels.confirmed_block IS DISTINCT FROM channels.state_block`);

/** The values of a channel's row, from what the chain shows of it at `now`. */
function channelValues(
  channel: ChannelConfig & { readonly id: Uint8Array; readonly network: string },
  state: ChannelState,
  now: number,
) {
  const { id, network, payer, payerAuthorizer, receiver, receiverAuthorizer, token, withdrawDelay, salt } = channel;
  const config = { id, network, payer, payerAuthorizer, receiver, receiverAuthorizer, token, withdrawDelay, salt };
  return { ...config, ...state, now };
}

// Three conditions on states, because the indexes are over states.
const PRUNE = sql<{ beforeMs: number; limit: number }>(`
  DELETE FROM channels WHERE id IN (
    SELECT id FROM channels
     WHERE charged = 0 AND read_at < @beforeMs
       AND NOT EXISTS (SELECT 1 FROM usdc_payments WHERE channel_id = channels.id AND state <> 'failed')
       AND NOT EXISTS (SELECT 1 FROM usdc_payments WHERE channel_id = channels.id AND state = 'failed')
       AND NOT EXISTS (SELECT 1 FROM channel_operations WHERE channel_id = channels.id AND state = 'open')
     ORDER BY read_at LIMIT @limit)`);

// --- Vouchers

const FIND_SALE = sql<{ channelId: Uint8Array; max: bigint }, PaymentRow>(
  `${SELECT_PAYMENT} WHERE channel_id = @channelId AND voucher_max = @max AND state <> 'failed'`,
);
const WHAT_IS_OPEN = sql<{ channelId: Uint8Array }, { open: 'deposit' | 'refund' | null }>(
  `SELECT CASE WHEN ${OPEN_SALE} THEN 'deposit' WHEN ${OPEN_REFUND} THEN 'refund' END AS open`,
);
// A row is inserted only if the channel's charges are exactly `max - price`. The unique indexes refuse a second sale of
// the voucher, and another payment's identifier. Two providers gave the state, and the contract has not refused the
// charges. The place is 0, because only open payments are ordered.
const CHARGE = sql<NewValues & { body: Uint8Array; keepUntil: number }, { id: string; channel_after: string }>(
  `INSERT INTO usdc_payments (${NEW_COLUMNS}, state, charged, ended_at, channel_after, place)
   SELECT ${NEW_VALUES}, 'settled', @price::numeric, @reservedAt::bigint, ${afterWith('balance')}, 0
     FROM channels
    WHERE channels.id = @channelId::bytea AND charged = @voucherMax::numeric - @price::numeric
      AND @voucherMax::numeric <= balance - withdraw_amount
      AND confirmed_block = state_block AND refused_at IS NULL AND NOT ${OPEN_SALE} AND NOT ${OPEN_REFUND}
   ON CONFLICT DO NOTHING RETURNING id, channel_after`,
  [
    `UPDATE channels
        SET charged = @voucherMax::numeric, signature = @voucherSignature::bytea,
            used_at = ${greatest('used_at', '@reservedAt::bigint')},
            unclaimed_since = coalesce(unclaimed_since, @reservedAt::bigint)
       FROM done WHERE channels.id = @channelId::bytea`,
    `INSERT INTO usdc_replies (payment_id, body, keep_until)
     SELECT done.id, @body::bytea, @keepUntil::bigint FROM done`,
  ],
  ['channel_after'],
);
const WRITE_OFF = sql<{ id: Uint8Array; amount: bigint; upTo: bigint }>(`
  UPDATE channels
     SET written_off = written_off + @amount::numeric,
         refused_at = CASE WHEN total_claimed + written_off + @amount::numeric < charged THEN refused_at END,
         unclaimed_since = CASE WHEN total_claimed + written_off + @amount::numeric < charged THEN unclaimed_since END
   WHERE id = @id AND charged = @upTo::numeric AND @amount::numeric >= 0
     AND total_claimed + written_off + @amount::numeric <= charged`);
const REFUSE_CLAIM = sql<{ id: Uint8Array; now: number }>(`
  UPDATE channels SET refused_at = coalesce(refused_at, @now::bigint) WHERE id = @id AND unclaimed_since IS NOT NULL`);

// --- Claims and refunds

const SELECT_OPERATION = `
  SELECT id, network, kind, channel_id AS "channelId", amount, calldata, transaction_hash AS "transaction", state,
         reason, created_at AS "createdAt", ended_at AS "endedAt"
    FROM channel_operations`;
const OPERATION = sql<{ id: string }, ChannelOperation>(`${SELECT_OPERATION} WHERE id = @id`);
const OPEN_OPERATIONS = sql<{ limit: number }, ChannelOperation>(
  `${SELECT_OPERATION} WHERE state = 'open' ORDER BY created_at, id LIMIT @limit`,
);
const DONE_CLAIMS = sql<{ network: string; from: number; to: number }, ChannelOperation>(`
  ${SELECT_OPERATION}
   WHERE network = @network AND kind = 'claim' AND state = 'done' AND ended_at >= @from AND ended_at < @to
   ORDER BY ended_at, id`);
const REFUNDS = "channel_id = @channelId AND kind = 'refund' AND state = 'done'";
const LAST_REFUND = sql<{ channelId: Uint8Array }, ChannelOperation>(
  `${SELECT_OPERATION} WHERE ${REFUNDS} ORDER BY ended_at DESC, id DESC LIMIT 1`,
);
const REFUNDED = sql<{ channelId: Uint8Array }, { sum: bigint }>(
  `SELECT coalesce(sum(amount), 0) AS sum FROM channel_operations WHERE ${REFUNDS}`,
);
const DONE = sql<{ transaction: Uint8Array }, ChannelOperation>(
  `${SELECT_OPERATION} WHERE transaction_hash = @transaction AND state = 'done' ORDER BY created_at, id LIMIT 1`,
);

// Without a pause nothing is after `@pausedSince`, which is null then.
const BEGIN = sql<NewOperation & { charged: bigint | null; pausedSince: number | null }>(`
  INSERT INTO channel_operations (id, network, kind, channel_id, amount, calldata, state, created_at)
  SELECT @id::text, @network::text, @kind::text, @channelId::bytea, @amount::numeric, @calldata::bytea, 'open',
         @createdAt::bigint
   WHERE @kind::text <> 'refund'
      OR (EXISTS (SELECT 1 FROM channels WHERE id = @channelId AND charged = @charged::numeric)
          AND NOT ${OPEN_SALE} AND NOT ${OPEN_REFUND}
          AND NOT EXISTS (SELECT 1 FROM channel_operations WHERE ${REFUNDS} AND ended_at > @pausedSince))`);
// No transaction is broadcast without this note. So an instance that has lost the lease broadcasts nothing any more.
const NOTE_BROADCAST = sql<{ id: string; transaction: Uint8Array; fencingToken: number | undefined }>(`
  UPDATE channel_operations SET transaction_hash = @transaction
   WHERE id = @id AND state = 'open' AND {HOLDS_LEASE}`);
// An amount or a transaction of null leaves the column as it is.
const END = sql<ReturnType<typeof endValues>>(`
  UPDATE channel_operations
     SET state = @state, amount = coalesce(@amount::numeric, amount),
         transaction_hash = coalesce(@transaction::bytea, transaction_hash), reason = @reason, ended_at = @endedAt,
         calldata = NULL
   WHERE id = @id AND state = 'open'`);

function endValues(id: string, end: OperationEnd) {
  const { state, endedAt } = end;
  return end.state === 'done'
    ? { id, state, endedAt, amount: end.amount, transaction: end.transaction, reason: null }
    : { id, state, endedAt, amount: null, transaction: null, reason: end.reason };
}

/** The channels of a ledger. `waiting` counts the replies that wait to be written by all stores of its database. */
export function createChannelStore(db: LedgerDatabase, waiting: WaitingBytes): ChannelStore {
  const write = <T>(step: Step<T>): Promise<T> => db.write('payments', step);
  const one = (call: Call): Promise<boolean> => write({ calls: [call], read: changedOne });
  const channels = async (call: Call<ChannelRow>): Promise<Channel[]> => (await db.read(call)).map(channelOf);
  const operations = async (call: Call<ChannelOperation>): Promise<ChannelOperation[]> => [...(await db.read(call))];
  const sum = async (call: Call<{ sum: bigint }>): Promise<bigint> => (await onlyRow(db, call)).sum;

  return {
    get: async (id) => (await channels(GET({ id })))[0] ?? null,
    listUnclaimed: (network, limit, { unclaimedSince: since, id } = { unclaimedSince: -1, id: NO_BYTES }) =>
      channels(UNCLAIMED({ network, limit, since, id })),
    listClaimed: (network, limit, after = NO_BYTES) => channels(CLAIMED({ network, limit, after })),
    listToRead: (network, head, limit, after = NO_BYTES) => channels(TO_READ({ network, head, limit, after })),
    hasAny: async (network) => (await db.read(ANY({ network }))).length > 0,
    countRefused: async (network) => (await onlyRow(db, REFUSED({ network }))).count,
    totals: (network) => onlyRow(db, TOTALS({ network })),
    totalsOverdue: (network, beforeMs) => sum(OVERDUE({ network, beforeMs })),
    note: (channel, state, now) =>
      write({
        calls: [NOTE_STATE(channelValues(channel, state, now)), GET({ id: channel.id })],
        read: ([, noted]) => channelOf(noted?.rows[0] as ChannelRow),
      }),
    prune: (beforeMs, limit) => write({ calls: [PRUNE({ beforeMs, limit })], read: changes }),
    findSale: async (channelId, max) => (await db.read(FIND_SALE({ channelId, max }))).map(paymentOf)[0] ?? null,
    findOpen: async (channelId) => (await onlyRow(db, WHAT_IS_OPEN({ channelId }))).open,
    charge: (sale, body, keepUntil) =>
      waiting.during(body.length, () =>
        write({
          calls: [CHARGE({ ...sale, ...voucherValues(sale.channel), body, keepUntil })],
          read: ([sold]) => {
            const [row] = (sold?.rows ?? []) as { channel_after: string }[];
            return row ? parseAfter(row.channel_after) : null;
          },
        }),
      ),
    writeOff: (id, amount, upTo) => one(WRITE_OFF({ id, amount, upTo })),
    refuseClaim: async (id, now) => {
      await one(REFUSE_CLAIM({ id, now }));
    },
    begin: (operation, terms) =>
      one(BEGIN({ ...operation, charged: terms?.charged ?? null, pausedSince: terms?.pausedSince ?? null })),
    noteBroadcast: (entries, fencingToken) =>
      write(noteEach(entries, ({ id, transaction }) => NOTE_BROADCAST({ id, transaction, fencingToken }))),
    end: (id, end) => one(END(endValues(id, end))),
    operation: (id) => first(db, OPERATION({ id })),
    openOperations: (limit) => operations(OPEN_OPERATIONS({ limit })),
    listDoneClaims: (network, from, to) => operations(DONE_CLAIMS({ network, from, to })),
    lastRefund: (channelId) => first(db, LAST_REFUND({ channelId })),
    getRefunded: (channelId) => sum(REFUNDED({ channelId })),
    findDone: (transaction) => first(db, DONE({ transaction })),
  };
}
