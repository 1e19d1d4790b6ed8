import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { migrate, openNamed, readMigrations, type Sqlite } from '../../lib/sqlite-file.ts';

const MIGRATIONS = join(import.meta.dirname, 'migrations');
/**
 * Pages kept in memory, in KiB: the newest hours of `blocks` and its index fit. A read of a whole day took as long with 2 MiB as with 16, because the
 * operating system keeps the file too, and past hours are computed once.
 */
const CACHE_KIB = 4 * 1024;
/** The write-ahead log shrinks to this after a checkpoint; a first fill would leave it much larger for ever. */
const WAL_LIMIT_BYTES = 32 * 1024 * 1024;

/**
 * Opens the chain database, creating and migrating it as needed.
 * All of it can be read from the chain again. So a power cut may lose the newest commits (`synchronous=NORMAL`), but the file stays consistent.
 * Throws DatabaseFileError, with the path in its message, for a file that cannot be read or written, or is no database.
 */
export function openChainDatabase(file: string): Sqlite {
  return openNamed(file, open);
}

function open(file: string): Sqlite {
  mkdirSync(dirname(file), { recursive: true });
  const db = new Database(file);
  // Readers never wait for the writer, and a commit is one append.
  db.pragma('journal_mode = WAL');
  // Under WAL a power cut can only lose commits, and the collector reads those blocks again. A sync for each block would cost more than the block.
  db.pragma('synchronous = NORMAL');
  // Another process (a copy, tools) may hold the write lock for a moment.
  db.pragma('busy_timeout = 5000');
  db.pragma(`cache_size = -${CACHE_KIB}`);
  db.pragma(`journal_size_limit = ${WAL_LIMIT_BYTES}`);
  migrate(db, MIGRATIONS);
  return db;
}

/** Opens the chain database read-only, beside the process that collects into it. */
function openChainReader(file: string): Sqlite {
  const db = new Database(file, { readonly: true });
  // A checkpoint that resets the log may block readers for a moment.
  db.pragma('busy_timeout = 5000');
  db.pragma(`cache_size = -${CACHE_KIB}`);
  return db;
}

/**
 * Opens a copy of another service's chain database read-only. Nothing in the file changes.
 * Throws for a copy of another version, which cannot be migrated here, and for a database that a service still writes to.
 */
export function openCopiedChain(file: string): Sqlite {
  const db = openChainReader(file);
  try {
    if (db.pragma('journal_mode', { simple: true }) === 'wal')
      throw new Error(`${file} is no copy: a service writes to it, or did (make one with the backup command)`);
    const [version, newest] = [Number(db.pragma('user_version', { simple: true })), readMigrations(MIGRATIONS).newest];
    if (version !== newest) throw new Error(`${file} is of version ${version}; this program reads ${newest}`);
    return db;
  } catch (error) {
    db.close();
    throw error;
  }
}
