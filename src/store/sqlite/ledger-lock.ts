import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { StartRefused } from '../../lib/start-refused.ts';

/** How long a start waits for the API processes of a dead primary. They exit when they notice its death; one that waits for the disk notices late. */
const ORPHANS_MS = 10_000;

/**
 * Locks a data directory for this process, or throws StartRefused while another one has it. A starting process takes over the work of the process before it, so that process and its API
 * processes must be dead; the API processes get `orphansMs` to exit. It is an SQLite lock on a file beside the ledger, which the system releases
 * when a process dies.
 */
export function holdLedger(file: string, orphansMs = ORPHANS_MS): { release(): void } {
  mkdirSync(dirname(file), { recursive: true });
  const db = hold(file, 0, 'EXCLUSIVE', `another process serves the ledger beside ${file}: stop it first`);
  try {
    const workers = workersFile(file);
    const why = `API processes of a service that has ended still use the ledger beside ${file}`;
    hold(workers, orphansMs, 'EXCLUSIVE', why).close();
  } catch (error) {
    db.close();
    throw error;
  }
  return { release: () => void db.close() };
}

/** Shares a data directory with the process that has locked it and its other API processes. Until release or death no later start can lock it. */
export function joinLedger(file: string): { release(): void } {
  const db = hold(workersFile(file), 0, 'DEFERRED', `the ledger beside ${file} is being taken over`);
  return { release: () => void db.close() };
}

const workersFile = (file: string): string => join(dirname(file), 'workers.lock');

function hold(file: string, timeout: number, kind: 'EXCLUSIVE' | 'DEFERRED', why: string): Database.Database {
  const db = new Database(file, { timeout });
  try {
    db.exec(`BEGIN ${kind}`);
    // A deferred transaction takes its shared lock with the first read.
    db.prepare('SELECT count(*) FROM sqlite_schema').get();
    return db;
  } catch (cause) {
    db.close();
    // Anything else is a fault of the file or its disk.
    throw isBusy(cause) ? new StartRefused(why, { cause }) : cause;
  }
}

const isBusy = (error: unknown): boolean => error instanceof Database.SqliteError && error.code === 'SQLITE_BUSY';
