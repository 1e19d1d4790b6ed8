import { closeSync, fdatasync, fstatSync, openSync } from 'node:fs';
import { DatabaseFileError, type Sqlite } from '../../lib/sqlite-file.ts';

// A durable commit, split in two. With `synchronous=FULL` SQLite appends a transaction to the log and syncs that inside
// of COMMIT, which blocks the event loop for 1.5 to 2.7 ms. Here COMMIT only appends, and a thread syncs the same file
// by the same system call.
// - The log is sequential, so a sync covers all earlier transactions. Other syncs (the log's header, checkpoints) stay
//   SQLite's, and a transaction that is run elsewhere on the connection is synced by its own COMMIT.
// - A failed sync is final: the system may have dropped what it could not write, and no later sync would report that.
//   Until the service is started again, every commit throws. The database may hold the transactions whose sync has
//   failed, as after a crash in the middle of a commit.
// - The system reports a failed write to each file that was open then, and to none that is opened later. So the log is
//   opened before the first sync: this process relies on what others have appended, and must learn when that was lost.

/** SQLite's number for `synchronous=FULL`. */
const FULL = 2;

export interface LogSync {
  /** Runs a transaction whose COMMIT appends to the log and does not wait for the disk. */
  commit(transaction: () => void): void;
  /** Once all that was committed before is on disk. Rejects when this sync or an earlier one has failed. */
  sync(): Promise<void>;
  /** The length of the log in bytes. SQLite does not shorten it. */
  bytes(): number;
  hasFailed(): boolean;
  /** Resolves with the error of the first sync that fails. */
  readonly syncFailed: Promise<Error>;
  close(): void;
}

export type SyncFile = (file: number, done: (error: Error | null) => void) => void;

/** Null for a connection whose commits wait for no disk: in memory, or with another `synchronous` than FULL. */
export function openLogSync(db: Sqlite, syncFile: SyncFile = fdatasync): LogSync | null {
  const isDurable = db.pragma('synchronous', { simple: true }) === FULL;
  if (!isDurable || db.pragma('journal_mode', { simple: true }) !== 'wal') return null;
  // SQLite creates the log with the first read, and keeps it for as long as the connection is open.
  db.prepare('SELECT count(*) FROM sqlite_schema').get();
  const path = `${db.name}-wal`;
  const file = openSync(path, 'r+');
  const firstFailure = Promise.withResolvers<Error>();
  let isClosed = false;
  let failed: Error | null = null;

  return {
    commit(transaction) {
      if (failed) throw failed;
      db.exec('PRAGMA synchronous = NORMAL');
      try {
        transaction();
      } finally {
        db.exec('PRAGMA synchronous = FULL');
      }
    },
    sync: () =>
      new Promise((resolve, reject) => {
        syncFile(file, (error) => {
          failed ??= error && new DatabaseFileError(path, (error as NodeJS.ErrnoException).code ?? 'unknown', error);
          if (!failed) return resolve();
          firstFailure.resolve(failed);
          reject(failed);
        });
      }),
    bytes: () => fstatSync(file).size,
    hasFailed: () => failed !== null,
    syncFailed: firstFailure.promise,
    close() {
      if (!isClosed) closeSync(file);
      isClosed = true;
    },
  };
}
