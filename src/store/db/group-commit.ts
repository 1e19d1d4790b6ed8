import { closeSync, existsSync, fdatasyncSync, openSync, readSync, writeFileSync } from 'node:fs';
import Database from 'better-sqlite3';
import { AppError } from '../../errors.ts';
import { asFileError, type Sqlite } from '../../lib/sqlite-file.ts';
import { type LogSync, openLogSync, type SyncFile } from './log-sync.ts';

// One durable commit for many writes to SQLite, because the sync to disk is most of a write's cost.
// 1. Writes wait for the end of their turn of the event loop, and for the sync of the batch before.
// 2. They run in their order, in one immediate transaction. When one is at fault, all are rolled back and run again,
//    each in a savepoint, so that only this one rejects. Savepoints cost a tenth of a write, so the first attempt has
//    none. A write may run twice, and must have no other effect.
// 3. Nothing resolves before the sync after COMMIT (log-sync.ts). Until then reads see the batch, but no later write
//    resolves: what was read is sure once a write after the read has resolved.
// 4. When the disk is full, the database locked or closed, the whole batch rejects, and none of it was made. When the
//    sync fails it rejects too, and may have been made.

/** So that a burst does not block the event loop for long. */
const MAX_BATCH = 256;

const LONGEST_WAIT_MS = 100;

/** Resolves once the write is on disk. One that `canWait` joins the next batch, for LONGEST_WAIT_MS at most. */
export type GroupCommit = <T>(write: () => T, timing?: 'now' | 'canWait') => Promise<T>;

// --- A batch

interface Waiting {
  /** With `apart` in its own savepoint. Throws when the whole transaction must be rolled back. */
  attempt(apart: boolean): void;
  /** After the commit. */
  settle(): void;
  fail(error: unknown): void;
}

/** For a failed batch, not for a write's own fault. */
type OnFailure = (failure: Error) => void;

/** With a `log` the sync is made outside of the event loop, else by COMMIT. */
export function createGroupCommit(
  db: Sqlite,
  log: LogSync | null = null,
  onFailure: OnFailure = () => {},
): GroupCommit {
  let waiting: Waiting[] = [];
  // Whether a flush is due, and whether the last batch waits for the disk.
  let isDue = false;
  let isSyncing = false;
  let timer: NodeJS.Timeout | undefined;
  const alone = db.transaction((write: () => unknown) => write());
  const write = createBatchWrite(db);

  function flushSoon(): void {
    if (isDue) return;
    isDue = true;
    if (!isSyncing) setImmediate(flush);
  }

  function flush(): void {
    isDue = false;
    clearTimeout(timer);
    timer = undefined;
    const batch = waiting.slice(0, MAX_BATCH);
    waiting = waiting.slice(MAX_BATCH);
    try {
      if (log) log.commit(() => write(batch));
      else write(batch);
      if (log) void settleOnceSynced(log, batch);
      else for (const one of batch) one.settle();
    } catch (error) {
      onFailure(rejectAll(batch, asLedgerError(error, db.name)));
    }
    if (waiting.length > 0) flushSoon();
  }

  async function settleOnceSynced(log: LogSync, batch: readonly Waiting[]): Promise<void> {
    isSyncing = true;
    try {
      await log.sync();
      for (const one of batch) one.settle();
    } catch (error) {
      onFailure(rejectAll(batch, asLedgerError(error, db.name)));
    }
    isSyncing = false;
    if (isDue) setImmediate(flush);
  }

  return <T>(write: () => T, timing: 'now' | 'canWait' = 'now') =>
    new Promise<T>((resolve, reject) => {
      waiting.push(waitingWrite(db, alone as Alone<T>, write, [resolve, reject]));
      if (timing === 'now') flushSoon();
      else timer ??= setTimeout(flushSoon, LONGEST_WAIT_MS);
    });
}

function rejectAll(batch: readonly Waiting[], failure: Error): Error {
  for (const one of batch) one.fail(failure);
  return failure;
}

function createBatchWrite(db: Sqlite): (batch: readonly Waiting[]) => void {
  const together = db.transaction((batch: readonly Waiting[], apart: boolean) => {
    for (const one of batch) one.attempt(apart);
  });
  return (batch) => {
    try {
      together.immediate(batch, false);
    } catch (error) {
      if (!isOwnFault(error)) throw error;
      together.immediate(batch, true);
    }
  };
}

/** Runs a write in a savepoint of its own. */
type Alone<T> = (write: () => T) => T;

function waitingWrite<T>(
  db: Sqlite,
  alone: Alone<T>,
  write: () => T,
  [resolve, reject]: readonly [resolve: (result: T) => void, reject: (error: unknown) => void],
): Waiting {
  let settle = () => {};
  const attempt = (apart: boolean) => {
    try {
      const result = apart ? alone(write) : write();
      // The savepoint's wrapper reports this error at the second attempt.
      if (!apart && result instanceof Promise) throw new Error('a write that is not synchronous');
      settle = () => resolve(result);
    } catch (error) {
      if (!apart || !db.inTransaction || !isOwnFault(error)) throw error;
      settle = () => reject(error);
    }
  };
  return { attempt, settle: () => settle(), fail: reject };
}

// --- The group commit of a connection

interface Group {
  readonly commit: GroupCommit;
  readonly log: LogSync | null;
  /** Of the last batch, until a check finds that the disk is well again. */
  failure: Error | null;
}

const ofDatabases = new WeakMap<Sqlite, Group>();

/** The group that all stores on a connection share, made at the first call. `syncFile` replaces the system's sync. */
export function groupOf(db: Sqlite, syncFile?: SyncFile): Group {
  const known = ofDatabases.get(db);
  if (known) return known;
  const log = openLogSync(db, syncFile);
  const commit = createGroupCommit(db, log, (failure) => {
    group.failure = failure;
  });
  const group: Group = { commit, log, failure: null };
  ofDatabases.set(db, group);
  return group;
}

/** Resolves when a sync has failed, after which the connection takes no more writes; else never. */
export function syncFailureOf(db: Sqlite): Promise<Error> {
  return groupOf(db).log?.syncFailed ?? new Promise(() => {});
}

/**
 * Closes a connection after its earlier writes, whatever their outcome. Rejects, and leaves it open, when a sync has
 * failed before and the disk still does: SQLite would copy the log into the file.
 */
export async function closeAfterWrites(db: Sqlite): Promise<void> {
  const { commit, log } = groupOf(db);
  await commit(() => {}).catch(() => {});
  if (log?.hasFailed()) rewriteLog(db);
  log?.close();
  db.close();
}

// --- A log that may be lost

const CHUNK_BYTES = 2 ** 20;

/**
 * Writes the log again, byte for byte, and syncs it. After a failed sync the system may count as written what is not on
 * the disk: later syncs succeed and do nothing, and a power cut in a checkpoint would leave a damaged file. Holds the
 * write lock, so that no process appends. Throws when the disk still fails.
 */
export function rewriteLog(db: Database.Database): void {
  const path = `${db.name}-wal`;
  if (!existsSync(path)) return;
  db.exec('BEGIN IMMEDIATE');
  try {
    const file = openSync(path, 'r+');
    try {
      const chunk = Buffer.allocUnsafe(CHUNK_BYTES);
      for (let at = 0, bytes = 0; ; at += bytes) {
        bytes = readSync(file, chunk, 0, CHUNK_BYTES, at);
        if (bytes === 0) break;
        // It writes all of them, where the last part ended.
        writeFileSync(file, chunk.subarray(0, bytes));
      }
      fdatasyncSync(file);
    } finally {
      closeSync(file);
    }
  } finally {
    db.exec('ROLLBACK');
  }
}

// --- Failures

const RETRY_SECONDS = 5;

/** Any other error (full, locked, unreadable) concerns the whole transaction. */
function isOwnFault(error: unknown): boolean {
  return !(error instanceof Database.SqliteError) || error.code.startsWith('SQLITE_CONSTRAINT');
}

/** 503 `ledger_unavailable` when the file cannot be written now, though the write may have been made; else a bug. */
function asLedgerError(error: unknown, path: string): Error {
  const cause = asFileError(error, path);
  if (!cause) return error instanceof Error ? error : new Error(String(error));
  const detail = 'the ledger cannot be written now; try again later';
  return new AppError(503, 'ledger_unavailable', detail, { retryAfterSeconds: RETRY_SECONDS, cause });
}
