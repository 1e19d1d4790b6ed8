import type { Sqlite } from '../../lib/sqlite-file.ts';
import { groupCommitOf } from '../db/group-commit.ts';
import type { ChannelStore } from '../ports/channels.ts';
import { createWaitingBytes } from '../waiting-bytes.ts';
import { createChannelReads, createChannelRows } from './channel-reads.ts';
import { createChannelWrites } from './channel-writes.ts';

/**
 * The store of payment channels on SQLite. Its writes share durable transactions with the payments' writes. Reads see committed data.
 * `waiting` counts the replies that wait to be written by all stores of this database.
 */
export function createChannelStore(db: Sqlite, waiting = createWaitingBytes()): ChannelStore {
  const commit = groupCommitOf(db);
  const writes = createChannelWrites(db);
  const rows = createChannelRows(db);
  const byId = (id: Uint8Array) => rows('SELECT * FROM channels WHERE id = ?', id)[0] ?? null;

  return {
    ...createChannelReads(db),
    get: async (id) => byId(id),
    note: (channel, state, now) =>
      commit(() => {
        writes.note(channel, state, now);
        const noted = byId(channel.id);
        if (!noted) throw new Error('the noted channel is not in the ledger');
        return noted;
      }),
    charge: (sale, reply, keepUntil) =>
      waiting.during(reply.length, () => commit(() => writes.charge(sale, reply, keepUntil))),
    writeOff: (id, amount, upTo) => commit(() => writes.writeOff(id, amount, upTo)),
    refuseClaim: (id, now) => commit(() => writes.refuseClaim(id, now)),
    prune: (beforeMs, limit) => commit(() => writes.prune(beforeMs, limit)),
    begin: (operation, terms) => commit(() => writes.begin(operation, terms)),
    noteBroadcast: (entries) => commit(() => writes.noteBroadcast(entries)),
    end: (id, end) => commit(() => writes.end(id, end)),
  };
}
