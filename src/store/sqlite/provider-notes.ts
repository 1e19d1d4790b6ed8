import type { Sqlite } from '../../lib/sqlite-file.ts';
import type { ProviderNote, ProviderNotes } from '../ports/providers.ts';
import { groupCommitOf } from './group-commit.ts';

/** The notes on RPC providers in the ledger's database. */
export function createProviderNotes(db: Sqlite): ProviderNotes {
  const list = db.prepare<[number], ProviderNote>(
    `SELECT host, kind, question, said, others, noted_at AS sinceMs, expires_at AS untilMs FROM provider_notes
      WHERE expires_at > ? ORDER BY noted_at, host, kind, question`,
  );
  const expire = db.prepare('DELETE FROM provider_notes WHERE expires_at <= ?');
  const put = db.prepare(
    `INSERT INTO provider_notes (host, kind, question, said, others, noted_at, expires_at)
     VALUES (@host, @kind, @question, @said, @others, @sinceMs, @untilMs)
     ON CONFLICT (host, kind, question) DO UPDATE
        SET said = excluded.said, others = excluded.others, expires_at = excluded.expires_at,
            noted_at = min(provider_notes.noted_at, excluded.noted_at)`,
  );
  const agree = db.prepare("DELETE FROM provider_notes WHERE kind = 'disputed' AND question = ?");
  const trust = db.prepare('DELETE FROM provider_notes WHERE host = ?');
  const commit = groupCommitOf(db);
  return {
    list: async (nowMs) => list.all(nowMs),
    put: (note) =>
      commit(() => {
        expire.run(note.sinceMs);
        put.run(note);
      }),
    agree: (question) => commit(() => void agree.run(question)),
    trust: (host) => commit(() => trust.run(host).changes),
  };
}
