import { FIND_OPEN, IS_TO_READ } from '../channel-columns.ts';
import { type ChannelRow, channelFromRow, type OperationRow, operationFromRow } from '../channel-row.ts';
import { type Pools, type Statement, statement } from '../db/connections.ts';
import type { WriteQueue } from '../db/write-queue.ts';
import type { Channel, ChannelOperation, ChannelStore } from '../ports/channels.ts';
import type { WaitingBytes } from '../waiting-bytes.ts';
import { channelWrites, GET_CHANNEL } from './channel-writes.ts';
import { createPaymentRows, SELECT_PAYMENT } from './payment-rows.ts';

const FIND_SALE = statement<{ channelId: Uint8Array; max: bigint }>(
  `${SELECT_PAYMENT} WHERE channel_id = @channelId AND voucher_max = @max AND state <> 'failed'`,
);
const WHAT_IS_OPEN = statement<{ channelId: Uint8Array }>(FIND_OPEN);
const UNCLAIMED = statement<{ network: string; limit: number; since: number; id: Uint8Array }>(`
  SELECT * FROM channels WHERE network = @network AND unclaimed_since IS NOT NULL AND (unclaimed_since, id) > (@since::bigint, @id::bytea)
   ORDER BY unclaimed_since, id LIMIT @limit`);
const TO_READ = statement<{ network: string; head: number; limit: number; after: Uint8Array }>(`
  SELECT * FROM channels
   WHERE network = @network AND id > @after::bytea AND ${IS_TO_READ.replace('@head', '@head::bigint')}
   ORDER BY id LIMIT @limit`);
const REFUSED = statement<{ network: string }>(
  'SELECT count(*)::numeric AS sum FROM channels WHERE network = @network AND refused_at IS NOT NULL',
);
const TOTALS = statement<{ network: string }>(`
  SELECT coalesce(sum(charged), 0) AS charged, coalesce(sum(total_claimed), 0) AS claimed, coalesce(sum(written_off), 0) AS "writtenOff"
    FROM channels WHERE network = @network`);
const ANY = statement<{ network: string }>('SELECT 1 AS one FROM channels WHERE network = @network LIMIT 1');
const CLAIMED = statement<{ network: string; limit: number; after: Uint8Array }>(
  `SELECT * FROM channels WHERE network = @network AND total_claimed > 0 AND id > @after::bytea
    ORDER BY id LIMIT @limit`,
);
const DONE_CLAIMS = statement<{ network: string; from: number; to: number }>(`
  SELECT * FROM channel_operations
   WHERE network = @network AND kind = 'claim' AND state = 'done' AND ended_at >= @from AND ended_at < @to
   ORDER BY ended_at, id`);
const OPERATION = statement<{ id: string }>('SELECT * FROM channel_operations WHERE id = @id');
const OPEN_OPERATIONS = statement<{ limit: number }>(
  "SELECT * FROM channel_operations WHERE state = 'open' ORDER BY created_at, id LIMIT @limit",
);
const LAST_REFUND = statement<{ channelId: Uint8Array }>(`
  SELECT * FROM channel_operations WHERE channel_id = @channelId AND kind = 'refund' AND state = 'done'
   ORDER BY ended_at DESC, id DESC LIMIT 1`);
const REFUNDED = statement<{ channelId: Uint8Array }>(`
  SELECT coalesce(sum(amount), 0) AS sum FROM channel_operations WHERE channel_id = @channelId AND kind = 'refund' AND state = 'done'`);
const DONE = statement<{ transaction: Uint8Array }>(
  "SELECT * FROM channel_operations WHERE transaction_hash = @transaction AND state = 'done' ORDER BY created_at, id LIMIT 1",
);
const OVERDUE = statement<{ network: string; beforeMs: number }>(`
  SELECT coalesce(sum(charged - written_off - total_claimed), 0) AS sum FROM channels
   WHERE network = @network AND unclaimed_since < @beforeMs`);

interface ChannelStoreOptions {
  readonly pools: Pools;
  /** The payments' queue, because the guards read the tables of both stores. */
  readonly queue: WriteQueue;
  /** Counts the replies that wait to be written by all stores of this database. */
  readonly waiting: WaitingBytes;
}

/** The store of payment channels on PostgreSQL. Its writes share transactions with the payments' writes. Reads see committed data. */
export function createChannelStore({ pools, queue, waiting }: ChannelStoreOptions): ChannelStore {
  const payments = createPaymentRows(pools);
  const channels = async (query: Statement): Promise<Channel[]> =>
    (await pools.read<ChannelRow>(query)).map(channelFromRow);
  const operations = async (query: Statement): Promise<ChannelOperation[]> =>
    (await pools.read<OperationRow>(query)).map(operationFromRow);
  const sum = async (query: Statement): Promise<bigint> => (await pools.read<{ sum: bigint }>(query))[0]?.sum ?? 0n;

  return {
    get: async (id) => (await channels(GET_CHANNEL({ id })))[0] ?? null,
    note: (channel, state, now) => queue.write(channelWrites.note(channel, state, now)),
    findSale: async (channelId, max) => (await payments(FIND_SALE({ channelId, max })))[0] ?? null,
    findOpen: async (channelId) =>
      (await pools.read<{ open: 'deposit' | 'refund' | null }>(WHAT_IS_OPEN({ channelId })))[0]?.open ?? null,
    charge: (sale, reply, keepUntil) =>
      waiting.during(reply.length, () => queue.write(channelWrites.charge(sale, reply, keepUntil))),
    listUnclaimed: (network, limit, after) => {
      const { unclaimedSince: since, id } = after ?? { unclaimedSince: -1, id: Buffer.alloc(0) };
      return channels(UNCLAIMED({ network, limit, since, id }));
    },
    listClaimed: (network, limit, after = Buffer.alloc(0)) => channels(CLAIMED({ network, limit, after })),
    listDoneClaims: (network, from, to) => operations(DONE_CLAIMS({ network, from, to })),
    listToRead: (network, head, limit, after = Buffer.alloc(0)) => channels(TO_READ({ network, head, limit, after })),
    countRefused: async (network) => Number(await sum(REFUSED({ network }))),
    writeOff: (id, amount, upTo) => queue.write(channelWrites.writeOff(id, amount, upTo)),
    hasAny: async (network) => (await pools.read(ANY({ network }))).length > 0,
    totals: async (network) => {
      const [sums] = await pools.read<Awaited<ReturnType<ChannelStore['totals']>>>(TOTALS({ network }));
      return sums ?? { charged: 0n, claimed: 0n, writtenOff: 0n };
    },
    refuseClaim: (id, now) => queue.write(channelWrites.refuseClaim(id, now)),
    prune: (beforeMs, limit) => queue.write(channelWrites.prune(beforeMs, limit)),
    begin: (operation, terms) => queue.write(channelWrites.begin(operation, terms)),
    operation: async (id) => (await operations(OPERATION({ id })))[0] ?? null,
    openOperations: (limit) => operations(OPEN_OPERATIONS({ limit })),
    noteBroadcast: (entries, fencingToken) => queue.write(channelWrites.noteBroadcast(entries, fencingToken ?? null)),
    end: (id, end) => queue.write(channelWrites.end(id, end)),
    lastRefund: async (channelId) => (await operations(LAST_REFUND({ channelId })))[0] ?? null,
    getRefunded: (channelId) => sum(REFUNDED({ channelId })),
    findDone: async (transaction) => (await operations(DONE({ transaction })))[0] ?? null,
    totalsOverdue: (network, beforeMs) => sum(OVERDUE({ network, beforeMs })),
  };
}
