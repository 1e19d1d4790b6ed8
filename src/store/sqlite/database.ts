import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { migrate, openNamed, type Sqlite } from '../../lib/sqlite-file.ts';
import { rewriteLog } from './rewrite-log.ts';
export type Statement = Database.Statement<unknown[], unknown>;

const MIGRATIONS = join(import.meta.dirname, 'migrations');

/**
 * Opens the ledger, creating and migrating it as needed.
 * Nothing can rebuild the ledger, so an acknowledged write must survive a power cut: `synchronous=FULL`. What an earlier process has left in the log is
 * on disk when this returns. Throws DatabaseFileError, with the path in its message, for a file that cannot be read or written, or is no database.
 */
export function openLedgerDatabase(file: string): Sqlite {
  return openNamed(file, open);
}

function open(file: string): Sqlite {
  mkdirSync(dirname(file), { recursive: true });
  const db = new Database(file);
  // Readers never wait for the writer, and a commit is one append.
  db.pragma('journal_mode = WAL');
  // WAL alone syncs at checkpoints only, and a lost reservation or intent could charge a buyer twice. The group commit syncs its own (log-sync.ts).
  db.pragma('synchronous = FULL');
  // 16 MB of log. Under load the default would copy the same pages into the file after nearly every commit, and all requests would wait.
  db.pragma('wal_autocheckpoint = 4000');
  // A log that a long read let grow is cut back. Its length is what shows that nothing is copied into the file (ping-writes.ts).
  db.pragma('journal_size_limit = 33554432');
  db.pragma('foreign_keys = ON');
  // Another process (backup, tools) may hold the write lock for a moment.
  db.pragma('busy_timeout = 5000');
  // A deleted signature or reply must not stay in free pages.
  db.pragma('secure_delete = ON');
  // A process that was killed may have left transactions in the log that no sync has reached, or that a failed sync has lost. Reads would see them, and a
  // power cut would take them back after they were answered from. A checkpoint copies the log into the file and syncs that. It waits for no other process.
  rewriteLog(db);
  db.pragma('wal_checkpoint(PASSIVE)');
  migrate(db, MIGRATIONS);
  return db;
}
