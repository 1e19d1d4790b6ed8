import type { Sqlite } from '../../lib/sqlite-file.ts';
import { FIND_OPEN, IS_TO_READ } from '../channel-columns.ts';
import { type ChannelRow, channelFromRow, type OperationRow, operationFromRow } from '../channel-row.ts';
import { createStatements } from '../db/sqlite.ts';
import type { Channel, ChannelOperation, ChannelStore } from '../ports/channels.ts';
import { createPaymentRows } from './payment-reads.ts';

type OperationReads = Pick<
  ChannelStore,
  'operation' | 'openOperations' | 'lastRefund' | 'getRefunded' | 'findDone' | 'listDoneClaims'
>;
type ChannelReads = OperationReads &
  Pick<
    ChannelStore,
    | 'findSale'
    | 'findOpen'
    | 'listUnclaimed'
    | 'listClaimed'
    | 'hasAny'
    | 'totals'
    | 'totalsOverdue'
    | 'listToRead'
    | 'countRefused'
  >;

/** Reads rows of channels by a condition. */
export function createChannelRows(db: Sqlite) {
  const sql = createStatements(db);
  return (text: string, ...values: readonly unknown[]): Channel[] =>
    sql(text)
      .safeIntegers()
      .all(...values)
      .map((row) => channelFromRow(row as ChannelRow));
}

/** Reads one sum; zero without rows. */
function createSum(db: Sqlite) {
  const sql = createStatements(db);
  return (text: string, values: readonly unknown[]): bigint => {
    const row = sql(text)
      .safeIntegers()
      .get(...values) as { sum: bigint | null };
    return row.sum ?? 0n;
  };
}

function createOperationReads(db: Sqlite): OperationReads {
  const sql = createStatements(db);
  const sum = createSum(db);
  const operations = (text: string, ...values: readonly unknown[]): ChannelOperation[] =>
    sql(text)
      .safeIntegers()
      .all(...values)
      .map((row) => operationFromRow(row as OperationRow));

  return {
    operation: async (id) => operations('SELECT * FROM channel_operations WHERE id = ?', id)[0] ?? null,
    openOperations: async (limit) =>
      operations("SELECT * FROM channel_operations WHERE state = 'open' ORDER BY created_at, id LIMIT ?", limit),
    listDoneClaims: async (network, from, to) =>
      operations(
        `SELECT * FROM channel_operations
          WHERE network = ? AND kind = 'claim' AND state = 'done' AND ended_at >= ? AND ended_at < ?
          ORDER BY ended_at, id`,
        ...[network, from, to],
      ),
    lastRefund: async (channelId) =>
      operations(
        `SELECT * FROM channel_operations WHERE channel_id = ? AND kind = 'refund' AND state = 'done'
          ORDER BY ended_at DESC, id DESC LIMIT 1`,
        channelId,
      )[0] ?? null,
    getRefunded: async (channelId) =>
      sum(
        "SELECT sum(amount) AS sum FROM channel_operations WHERE channel_id = ? AND kind = 'refund' AND state = 'done'",
        [channelId],
      ),
    findDone: async (transaction) =>
      operations(
        "SELECT * FROM channel_operations WHERE transaction_hash = ? AND state = 'done' ORDER BY created_at, id LIMIT 1",
        transaction,
      )[0] ?? null,
  };
}

/** The reads of the channels' store. They see committed data: acknowledged writes and not waiting ones. */
export function createChannelReads(db: Sqlite): ChannelReads {
  const sql = createStatements(db);
  const payments = createPaymentRows(db);
  const channels = createChannelRows(db);
  const sum = createSum(db);

  return {
    findSale: async (channelId, max) => {
      const text = "SELECT * FROM usdc_payments WHERE channel_id = ? AND voucher_max = ? AND state <> 'failed'";
      return payments(text, [channelId, max])[0] ?? null;
    },
    findOpen: async (channelId) => (sql(FIND_OPEN).get({ channelId }) as { open: 'deposit' | 'refund' | null }).open,
    listUnclaimed: async (network, limit, after) =>
      channels(
        `SELECT * FROM channels WHERE network = ? AND unclaimed_since IS NOT NULL AND (unclaimed_since, id) > (?, ?)
          ORDER BY unclaimed_since, id LIMIT ?`,
        ...[network, after?.unclaimedSince ?? -1, after?.id ?? new Uint8Array(), limit],
      ),
    hasAny: async (network) => sql('SELECT 1 FROM channels WHERE network = ? LIMIT 1').get(network) !== undefined,
    listClaimed: async (network, limit, after = new Uint8Array()) =>
      channels(
        'SELECT * FROM channels WHERE network = ? AND total_claimed > 0 AND id > ? ORDER BY id LIMIT ?',
        ...[network, after, limit],
      ),
    listToRead: async (network, head, limit, after = new Uint8Array()) =>
      channels(
        `SELECT * FROM channels WHERE network = @network AND id > @after AND ${IS_TO_READ} ORDER BY id LIMIT @limit`,
        { network, head, limit, after },
      ),
    countRefused: async (network) =>
      Number(sum('SELECT count(*) AS sum FROM channels WHERE network = ? AND refused_at IS NOT NULL', [network])),
    totals: async (network) =>
      sql(
        `SELECT coalesce(sum(charged), 0) AS charged, coalesce(sum(total_claimed), 0) AS claimed, coalesce(sum(written_off), 0) AS writtenOff
           FROM channels WHERE network = ?`,
      )
        .safeIntegers()
        .get(network) as Awaited<ReturnType<ChannelStore['totals']>>,
    ...createOperationReads(db),
    totalsOverdue: async (network, beforeMs) =>
      sum(
        `SELECT sum(charged - written_off - total_claimed) AS sum FROM channels
          WHERE network = ? AND unclaimed_since < ?`,
        [network, beforeMs],
      ),
  };
}
