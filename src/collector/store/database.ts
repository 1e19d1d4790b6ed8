import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { migrate, openNamed, readMigrations, type Sqlite } from '../../lib/sqlite-file.ts';

// Opens the chain's database to collect into, or another service's copy of one to read.

const MIGRATIONS = join(import.meta.dirname, 'migrations');
/** Holds the newest hours of `blocks`. 16 MiB read a day no faster than 2, because the system keeps the file too. */
const CACHE_KIB = 4 * 1024;
/** The write-ahead log after a checkpoint; a first fill would leave it much larger for ever. */
const WAL_LIMIT_BYTES = 32 * 1024 * 1024;

/** A power cut may lose the newest commits. Throws DatabaseFileError with the file's path. */
export function openChainDatabase(file: string): Sqlite {
  return openNamed(file, open);
}

function open(file: string): Sqlite {
  mkdirSync(dirname(file), { recursive: true });
  const db = new Database(file);
  // Readers never wait for the writer, and a commit is one append.
  db.pragma('journal_mode = WAL');
  // A sync for each block would cost more than the block.
  db.pragma('synchronous = NORMAL');
  // A copy or a tool may hold the write lock for a moment.
  db.pragma('busy_timeout = 5000');
  db.pragma(`cache_size = -${CACHE_KIB}`);
  db.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`);
  migrate(db, readMigrations(MIGRATIONS));
  return db;
}

/** Throws for another version, and for a database that a service still writes to. */
export function openCopiedChain(file: string): Sqlite {
  const db = new Database(file, { readonly: true });
  // A checkpoint that resets the log may block readers for a moment.
  db.pragma('busy_timeout = 5000');
  db.pragma(`cache_size = -${CACHE_KIB}`);
  try {
    if (db.pragma('journal_mode', { simple: true }) === 'wal')
      throw new Error(`${file} is no copy: a service writes to it, or did (make one with the backup command)`);
    const version = Number(db.pragma('user_version', { simple: true }));
    const newest = readMigrations(MIGRATIONS).at(-1)?.version;
    if (version !== newest) throw new Error(`${file} is of version ${version}; this program reads ${newest}`);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
