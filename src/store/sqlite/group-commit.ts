import Database from 'better-sqlite3';
import type { Sqlite } from './database.ts';

/** Writes of one transaction at most: a burst must not hold the event loop for long. */
const MAX_BATCH = 256;

/** Runs a write within the next shared transaction and resolves with its result once that is on disk. */
export type GroupCommit = <T>(write: () => T) => Promise<T>;

interface Waiting {
  /** Runs the write, within a savepoint of its own or not; throws when the whole transaction cannot go on. */
  attempt(apart: boolean): void;
  /** Tells how the write went, after the commit. */
  settle(): void;
  fail(error: unknown): void;
}

const ofDatabases = new WeakMap<Sqlite, GroupCommit>();

/** The one group commit of a connection: stores on the same database share their transactions too. */
export function groupCommitOf(db: Sqlite): GroupCommit {
  const known = ofDatabases.get(db) ?? createGroupCommit(db);
  ofDatabases.set(db, known);
  return known;
}

/**
 * Lets concurrent writes share one durable transaction, because the sync to disk is what a write costs.
 * 1. Writes that arrive in one turn of the event loop wait for its end; those that arrive while a commit blocks the loop form the next batch.
 * 2. They run in the order of their arrival, in one immediate transaction. Where one of them violates a constraint or throws, all are undone
 *    and run again, each within its own savepoint, so that it is undone and rejects alone: savepoints cost a tenth of a write, and nearly
 *    all go well. So a write may run twice, and must do nothing but write.
 * 3. Nothing resolves before COMMIT has returned. When the disk is full, the database locked or closed, every write of the batch rejects,
 *    and none of them is in the database.
 */
export function createGroupCommit(db: Sqlite): GroupCommit {
  let waiting: Waiting[] = [];
  const alone = db.transaction((write: () => unknown) => write());
  const together = db.transaction((batch: readonly Waiting[], apart: boolean) => {
    for (const one of batch) one.attempt(apart);
  });

  function write(batch: readonly Waiting[]): void {
    try {
      together.immediate(batch, false);
    } catch (error) {
      if (!isOwnFault(error)) throw error;
      together.immediate(batch, true);
    }
  }

  function flush(): void {
    const batch = waiting.slice(0, MAX_BATCH);
    waiting = waiting.slice(MAX_BATCH);
    if (waiting.length > 0) setImmediate(flush);
    try {
      write(batch);
    } catch (error) {
      for (const one of batch) one.fail(error);
      return;
    }
    for (const one of batch) one.settle();
  }

  return <T>(write: () => T) =>
    new Promise<T>((resolve, fail) => {
      let settle = () => {};
      const attempt = (apart: boolean) => {
        try {
          const result = apart ? (alone(write) as T) : write();
          // The wrapper of a savepoint says so; here it only has to come to that.
          if (!apart && result instanceof Promise) throw new Error('a write that is not synchronous');
          settle = () => resolve(result);
        } catch (error) {
          if (!apart || !db.inTransaction || !isOwnFault(error)) throw error;
          settle = () => fail(error);
        }
      };
      waiting.push({ attempt, settle: () => settle(), fail });
      if (waiting.length === 1) setImmediate(flush);
    });
}

/** Whether an error is of the write itself; whatever else the database reports (full, locked, unreadable) is everybody's. */
function isOwnFault(error: unknown): boolean {
  return !(error instanceof Database.SqliteError) || error.code.startsWith('SQLITE_CONSTRAINT');
}
