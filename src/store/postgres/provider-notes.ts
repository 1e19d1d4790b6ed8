import type { ProviderNote, ProviderNotes } from '../ports/providers.ts';
import type { Pools } from './pool.ts';
import { statement } from './statement.ts';
import type { WriteQueue } from './write-queue.ts';

const LIST = statement<{ nowMs: number }>(
  `SELECT host, kind, question, said, others, noted_at AS "sinceMs", expires_at AS "untilMs" FROM provider_notes
    WHERE expires_at > @nowMs ORDER BY noted_at, host, kind, question`,
);
const EXPIRE = statement<{ nowMs: number }>('DELETE FROM provider_notes WHERE expires_at <= @nowMs');
const PUT = statement<ProviderNote>(`
  INSERT INTO provider_notes (host, kind, question, said, others, noted_at, expires_at)
  VALUES (@host, @kind, @question, @said, @others, @sinceMs, @untilMs)
  ON CONFLICT (host, kind, question) DO UPDATE
     SET said = excluded.said, others = excluded.others, expires_at = excluded.expires_at,
         noted_at = least(provider_notes.noted_at, excluded.noted_at)`);
const AGREE = statement<{ question: string }>(
  "DELETE FROM provider_notes WHERE kind = 'disputed' AND question = @question",
);
const TRUST = statement<{ host: string }>('DELETE FROM provider_notes WHERE host = @host');

/** The notes on RPC providers on PostgreSQL, the same for all instances. */
export function createProviderNotes({ read }: Pools, queue: WriteQueue): ProviderNotes {
  return {
    list: (nowMs) => read<ProviderNote>(LIST({ nowMs })),
    put: (note) => queue.write({ statements: [EXPIRE({ nowMs: note.sinceMs }), PUT(note)], read: () => {} }),
    agree: (question) => queue.write({ statements: [AGREE({ question })], read: () => {} }),
    trust: (host) => queue.write({ statements: [TRUST({ host })], read: ([done]) => done?.rowCount ?? 0 }),
  };
}
