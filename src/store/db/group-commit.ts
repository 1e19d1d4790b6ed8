import { closeSync, existsSync, fdatasyncSync, openSync, readSync, writeSync } from 'node:fs';
import Database from 'better-sqlite3';
import { AppError } from '../../errors.ts';
import { asFileError, type Sqlite } from '../../lib/sqlite-file.ts';
import { type LogSync, openLogSync } from './log-sync.ts';

/** The most writes in one transaction, so that a burst does not block the event loop for long. */
const MAX_BATCH = 256;

/** How long a write that can wait waits for another one's transaction, in milliseconds. */
const LONGEST_WAIT_MS = 100;

/**
 * Runs a write in the next shared transaction, and resolves with its result once the transaction is on disk. A write that `canWait` begins no
 * transaction of its own: it joins the next one, and is made after LONGEST_WAIT_MS at the latest.
 */
export type GroupCommit = <T>(write: () => T, timing?: 'now' | 'canWait') => Promise<T>;

interface Waiting {
  /** Runs the write, with `apart` in its own savepoint. Throws when the whole transaction must be rolled back. */
  attempt(apart: boolean): void;
  /** Settles the write's promise, after the commit. */
  settle(): void;
  fail(error: unknown): void;
}

/** Called when a batch has failed. An error that a write itself has caused is no failure of its batch. */
type OnFailure = (failure: Error) => void;

/** The group commit of one connection. */
interface Group {
  readonly commit: GroupCommit;
  readonly log: LogSync | null;
  /** Why the last batch that failed did so, until a check finds that the disk is well again. */
  failure: Error | null;
}

const ofDatabases = new WeakMap<Sqlite, Group>();

/** The group commit of a connection. All stores on the connection share it, and so share transactions. */
export function groupCommitOf(db: Sqlite): GroupCommit {
  return groupOf(db).commit;
}

/** Resolves when a sync of the connection's log has failed, after which it takes no more writes; else never. */
export function syncFailureOf(db: Sqlite): Promise<Error> {
  return groupOf(db).log?.syncFailed ?? new Promise(() => {});
}

/**
 * Closes a connection after its earlier writes. When one of them fails, its own promise rejects. SQLite copies the log into the file then. Rejects, and
 * leaves the connection open, when a sync has failed before and still does.
 */
export async function closeAfterWrites(db: Sqlite): Promise<void> {
  const { commit, log } = groupOf(db);
  await commit(() => {}).catch(() => {});
  if (log?.hasFailed()) rewriteLog(db);
  log?.close();
  db.close();
}

/** The group commit of a connection with its log and its last failure. */
export function groupOf(db: Sqlite): Group {
  const known = ofDatabases.get(db);
  if (known) return known;
  const log = openLogSync(db);
  const commit = createGroupCommit(db, log, (failure) => {
    group.failure = failure;
  });
  const group: Group = { commit, log, failure: null };
  ofDatabases.set(db, group);
  return group;
}

/**
 * Lets concurrent writes share one durable transaction, because the sync to disk is most of a write's cost.
 * 1. Writes that arrive in one turn of the event loop wait for its end; those that arrive while the log of the last batch is synced form the next one.
 * 2. They run in the order of their arrival, in one immediate transaction. When one of them violates a constraint or throws, all are rolled back and
 *    run again, each in its own savepoint, so that only the faulty write rejects. Savepoints cost a tenth of a write, so the first attempt has none.
 *    A write may therefore run twice, and must have no other effect.
 * 3. Nothing resolves before the transaction is on disk. With a `log` the sync comes after COMMIT, outside of the event loop. Until then reads see the
 *    batch, but no write resolves that ran after it. So what was read can be relied on once a write that follows the read has resolved.
 * 4. When the disk is full, the database locked or closed, every write of the batch rejects, and none of them is in the database. When the sync fails,
 *    they reject too, and may be in the database.
 */
export function createGroupCommit(
  db: Sqlite,
  log: LogSync | null = null,
  onFailure: OnFailure = () => {},
): GroupCommit {
  let waiting: Waiting[] = [];
  // Whether a flush is due, and whether the last batch waits for the disk.
  let isDue = false;
  let isSyncing = false;
  let timer: NodeJS.Timeout | null = null;
  const alone = db.transaction((write: () => unknown) => write());
  const write = createBatchWrite(db);

  /** Flushes at the end of this turn of the event loop, or once the batch before is on disk. */
  function flushSoon(): void {
    if (isDue) return;
    isDue = true;
    if (!isSyncing) setImmediate(flush);
  }

  function flush(): void {
    isDue = false;
    if (timer) clearTimeout(timer);
    timer = null;
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

/** Returns a function that runs a batch in one immediate transaction, and once more with savepoints when one of its writes is at fault. */
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

/** A write that waits for its batch, and what settles its promise. */
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
      // The savepoint's wrapper reports this error; here it only has to trigger the second attempt.
      if (!apart && result instanceof Promise) throw new Error('a write that is not synchronous');
      settle = () => resolve(result);
    } catch (error) {
      if (!apart || !db.inTransaction || !isOwnFault(error)) throw error;
      settle = () => reject(error);
    }
  };
  return { attempt, settle: () => settle(), fail: reject };
}

const CHUNK_BYTES = 2 ** 20;

/**
 * Writes the log again, byte for byte, and syncs it. After a sync that has failed, the system may hold what is not on the disk and count it as written:
 * later syncs then succeed and do nothing. A checkpoint relies on them, and a power cut in the middle of it would leave a damaged file. What was written
 * anew is synced for certain. Holds the write lock meanwhile, so that no process appends. Throws when the disk still fails.
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
        for (let done = 0; done < bytes; ) done += writeSync(file, chunk, done, bytes - done, at + done);
      }
      fdatasyncSync(file);
    } finally {
      closeSync(file);
    }
  } finally {
    db.exec('ROLLBACK');
  }
}

const RETRY_SECONDS = 5;

/** Whether the write itself caused the error. Any other error of the database (full, locked, unreadable) concerns the whole transaction. */
function isOwnFault(error: unknown): boolean {
  return !(error instanceof Database.SqliteError) || error.code.startsWith('SQLITE_CONSTRAINT');
}

/**
 * The failure of a write as the rest of the service gets it: 503 `ledger_unavailable` when the file cannot be written now, as PostgreSQL's stores say it.
 * The write may have been made all the same, so a caller must not conclude that nothing was charged. Any other error is a bug and stays as it is.
 */
function asLedgerError(error: unknown, path: string): Error {
  const cause = asFileError(error, path);
  if (!cause) return error instanceof Error ? error : new Error(String(error));
  const detail = 'the ledger cannot be written now; try again later';
  return new AppError(503, 'ledger_unavailable', detail, { retryAfterSeconds: RETRY_SECONDS, cause });
}
