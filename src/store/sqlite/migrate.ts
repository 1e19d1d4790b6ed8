import { readFileSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { readMigrations } from '../schema-version.ts';

/**
 * Applies the numbered files of a directory that this database has not seen, each in one transaction.
 * A database of a newer program is refused: its rows may mean something that this one does not know.
 */
export function migrate(db: Database.Database, directory: string): void {
  const done = Number(db.pragma('user_version', { simple: true }));
  const { migrations, newest } = readMigrations(directory);
  if (done > newest)
    throw new Error(`${db.name} is of version ${done}; this program knows ${newest}: start the newer program`);
  for (const { version, path } of migrations) {
    if (version <= done) continue;
    const sql = readFileSync(path, 'utf8');
    db.transaction(() => {
      db.exec(sql);
      db.pragma(`user_version = ${version}`);
    }).immediate();
  }
}
