import { createHash } from 'node:crypto';
import type { Sqlite } from './database.ts';

/** A catalogue as it was last read well. */
export interface CatalogueCopy {
  /** Unix milliseconds. */
  readonly readAt: number;
  /** JSON text, in whatever form its writer reads. */
  readonly entries: string;
}

/** Keeps the last good copy of the third-party catalogue: what `save` resolves with is on disk. */
export interface CatalogueStore {
  load(): Promise<CatalogueCopy | null>;
  /** When the stored copy was read, without reading it; null while there is none. Another process may have stored it. */
  readAt(): Promise<number | null>;
  save(copy: CatalogueCopy): Promise<void>;
}

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
