import type { Sqlite } from '../../lib/sqlite-file.ts';
import type { ServiceKeyStore } from '../ports/service-keys.ts';
import { groupCommitOf } from './group-commit.ts';

/** The ledger's keys on its database. */
export function createServiceKeys(db: Sqlite): ServiceKeyStore {
  const insert = db.prepare('INSERT INTO service_keys (name, value) VALUES (?, ?) ON CONFLICT DO NOTHING');
  const read = db.prepare<[string], Uint8Array>('SELECT value FROM service_keys WHERE name = ?').pluck();
  const commit = groupCommitOf(db);
  return {
    keep: (name, fresh) =>
      commit(() => {
        insert.run(name, fresh);
        return read.get(name) ?? fresh;
      }),
  };
}
