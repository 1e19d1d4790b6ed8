import { existsSync, mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { StartRefused } from '../../errors.ts';

/**
 * How long a start waits for processes that a release with `WORKERS` has left behind, in milliseconds. They exit when
 * they notice the death of their primary. This wait goes with the next release.
 */
const WORKERS_MS = 10_000;

/**
 * Locks a data directory for this process, or throws StartRefused while another one has it. A starting process takes
 * over the work of the process before it, so that process must be dead. It is an SQLite lock on a file beside the
 * ledger, which the system releases when a process dies.
 */
export function holdLedger(file: string, workersMs = WORKERS_MS): { release(): void } {
  mkdirSync(dirname(file), { recursive: true });
  const db = hold(file, 0, `another process serves the ledger beside ${file}: stop it first`);
  try {
    const workers = join(dirname(file), 'workers.lock');
    const why = `processes of a service that has ended still use the ledger beside ${file}`;
    if (existsSync(workers)) hold(workers, workersMs, why).close();
  } catch (error) {
    db.close();
    throw error;
  }
  return { release: () => void db.close() };
}

function hold(file: string, timeout: number, why: string): Database.Database {
  const db = new Database(file, { timeout });
  try {
    db.exec('BEGIN EXCLUSIVE');
    return db;
  } catch (cause) {
    db.close();
    // Anything else is a fault of the file or its disk.
    throw isBusy(cause) ? new StartRefused(why, { cause }) : cause;
  }
}

const isBusy = (error: unknown): boolean => error instanceof Database.SqliteError && error.code === 'SQLITE_BUSY';
