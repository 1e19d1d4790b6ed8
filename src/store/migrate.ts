import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Sqlite } from './database.ts';

/**
 * Applies the numbered files of a directory that this database has not seen, each in one transaction.
 * A database of a newer program is refused: its rows may mean something that this one does not know.
 */
export function migrate(db: Sqlite, directory: string): void {
  const done = Number(db.pragma('user_version', { simple: true }));
  const files = readdirSync(directory)
    .filter((name) => /^\d{3}-.+\.sql$/.test(name))
    .sort();
  const newest = Number(files.at(-1)?.slice(0, 3) ?? 0);
  if (done > newest)
    throw new Error(`${db.name} is of version ${done}; this program knows ${newest}: start the newer program`);
  for (const name of files) {
    const version = Number(name.slice(0, 3));
    if (version <= done) continue;
    const sql = readFileSync(join(directory, name), 'utf8');
    db.transaction(() => {
      db.exec(sql);
      db.pragma(`user_version = ${version}`);
    }).immediate();
  }
}
