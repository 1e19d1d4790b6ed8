import { createHash } from 'node:crypto';
import type { Sqlite } from '../../lib/sqlite-file.ts';
import type { CatalogueCopy, CatalogueStore } from '../ports/catalogue.ts';

/** The copy on the ledger's database. An unchanged text is not written again: only its time is. */
export function createCatalogueStore(db: Sqlite): CatalogueStore {
  const load = db.prepare<[], CatalogueCopy>('SELECT read_at AS readAt, entries FROM catalogue_copy');
  const readAt = db.prepare<[], { readAt: number }>('SELECT read_at AS readAt FROM catalogue_copy');
  const touch = db.prepare('UPDATE catalogue_copy SET read_at = ? WHERE digest = ?');
  const replace = db.prepare(
    'INSERT OR REPLACE INTO catalogue_copy (id, read_at, digest, entries) VALUES (1, ?, ?, ?)',
  );
  return {
    load: async () => load.get() ?? null,
    readAt: async () => readAt.get()?.readAt ?? null,
    save: async ({ readAt, entries }) => {
      const digest = createHash('sha256').update(entries).digest();
      if (touch.run(readAt, digest).changes === 0) replace.run(readAt, digest, entries);
    },
  };
}
