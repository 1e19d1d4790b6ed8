import { readFileSync } from 'node:fs';
import type Database from 'better-sqlite3';
import { readMigrations } from '../schema-version.ts';

/**
 * Applies the numbered files of a directory that this database lacks, each in one transaction.
 * Throws for a database of a newer program, because its rows may have a meaning that this program does not know.
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
