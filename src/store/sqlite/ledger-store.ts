import type { Sqlite } from '../../lib/sqlite-file.ts';
import { closeAfterWrites, groupCommitOf } from '../db/group-commit.ts';
import { createStatements, pingWrites } from '../db/sqlite.ts';
import type { LedgerStore, ReplyChange } from '../ports/payments.ts';
import { createWaitingBytes } from '../waiting-bytes.ts';
import { createLedgerWrites } from './ledger-writes.ts';
import { createPaymentReads } from './payment-reads.ts';

/**
 * The ledger's store on SQLite. Concurrent writes share durable transactions, because a sale makes four writes and the sync to disk is most of their
 * cost. Each write has its own outcome, as if the calls had come one after the other.
 * Reads see committed data: acknowledged writes and not waiting ones. So each write contains its guard and does not rely on an earlier read.
 * `waiting` counts the replies that wait to be written by all stores of this database.
 */
export function createLedgerStore(db: Sqlite, waiting = createWaitingBytes()): LedgerStore {
  const sql = createStatements(db);
  const commit = groupCommitOf(db);
  const writes = createLedgerWrites(db);

  return {
    ...createPaymentReads(db),
    reserve: (payment, maxOpen, reusableReason) => commit(() => writes.reserve(payment, maxOpen, reusableReason)),
    move: (id, from, to, change, reply) =>
      waiting.during(storedBytes(reply), () => commit(() => writes.move(id, from, to, change, reply))),
    noteBroadcast: (entries, where) => commit(() => writes.noteBroadcast(entries, where)),
    release: (id, from) => commit(() => writes.release(id, from)),
    takeReply: (id, max, now) => commit(() => writes.takeReply(id, max, now)),
    // A buyer who got the answer waits for nothing. A note that a crash loses only keeps the reply for longer.
    delivered: (id, now, keepUntil) => commit(() => writes.delivered(id, now, keepUntil), 'canWait'),
    trimReplies: (from, to, bytes) => commit(() => writes.trimReplies(from, to, bytes)),
    purgeReplies: (now) => commit(() => writes.purgeReplies(now)),
    replyBytes: async () => {
      const row = sql('SELECT coalesce(sum(length(body)), 0) AS bytes FROM usdc_replies').get();
      return (row as { bytes: number }).bytes + waiting.read();
    },
    ping: async () => {
      sql('SELECT id FROM usdc_payments LIMIT 1').get();
      await pingWrites(db);
    },
    close: () => closeAfterWrites(db),
  };
}

/** Bytes that a change adds to the kept replies. */
function storedBytes(reply: ReplyChange | undefined): number {
  return reply !== undefined && reply !== 'drop' && 'store' in reply ? reply.store.length : 0;
}
