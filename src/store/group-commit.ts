import Database from 'better-sqlite3';
import type { Sqlite } from './database.ts';

/** Writes of one transaction at most: a burst must not hold the event loop for long. */
const MAX_BATCH = 256;

/** Runs a write within the next shared transaction and resolves with its result once that is on disk. */
export type GroupCommit = <T>(write: () => T) => Promise<T>;

interface Waiting {
  /** Runs the write; throws when the whole transaction cannot go on. */
  attempt(): void;
  /** Tells how the write went, after the commit. */
  settle(): void;
  fail(error: unknown): void;
}

/**
 * Lets concurrent writes share one durable transaction, because the sync to disk is what a write costs.
 * 1. Writes that arrive in one turn of the event loop wait for its end; those that arrive while a commit blocks the loop form the next batch.
 * 2. They run in the order of their arrival, in one immediate transaction, each within its own savepoint: one that violates a
 *    constraint or throws is undone and rejects alone.
 * 3. Nothing resolves before COMMIT has returned. When the disk is full, the database locked or closed, every write of the batch rejects,
 *    and none of them is in the database.
 */
export function createGroupCommit(db: Sqlite): GroupCommit {
  let waiting: Waiting[] = [];
  const alone = db.transaction((write: () => unknown) => write());
  const together = db.transaction((batch: readonly Waiting[]) => {
    for (const one of batch) one.attempt();
  });

  function flush(): void {
    const batch = waiting.slice(0, MAX_BATCH);
    waiting = waiting.slice(MAX_BATCH);
    if (waiting.length > 0) setImmediate(flush);
    try {
      together.immediate(batch);
    } catch (error) {
      for (const one of batch) one.fail(error);
      return;
    }
    for (const one of batch) one.settle();
  }

  return <T>(write: () => T) =>
    new Promise<T>((resolve, fail) => {
      let settle = () => {};
      const attempt = () => {
        try {
          const result = alone(write) as T;
          settle = () => resolve(result);
        } catch (error) {
          if (!db.inTransaction || !isOwnFault(error)) throw error;
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
