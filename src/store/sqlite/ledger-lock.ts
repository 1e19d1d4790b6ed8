import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';
import { StartRefused } from '../../errors.ts';

/**
 * Locks a data directory for this process, or throws StartRefused while another one has it. A starting process takes
 * over the work of the process before it, so that process must be dead. It is an SQLite lock on a file beside the
 * ledger, which the system releases when a process dies.
 */
export function holdLedger(file: string): { release(): void } {
  mkdirSync(dirname(file), { recursive: true });
  const db = new Database(file, { timeout: 0 });
  try {
    db.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    db.close();
    const why = `another process serves the ledger beside ${file}: stop it first`;
    // Anything else is a fault of the file or its disk.
    throw isBusy(cause) ? new StartRefused(why, { cause }) : cause;
  }
  return { release: () => void db.close() };
}

const isBusy = (error: unknown): boolean => error instanceof Database.SqliteError && error.code === 'SQLITE_BUSY';
