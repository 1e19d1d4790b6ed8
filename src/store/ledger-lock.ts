import {
  closeSync,
  existsSync,
  fsyncSync,
  mkdirSync,
  openSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { StartRefused } from '../errors.ts';

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

/**
 * The file beside a ledger that says where it was copied to. It is no row of the ledger: so a backup that is put in its
 * place is refused too, and deleting the file undoes it.
 */
export const moveMark = (file: string): string => `${existsSync(file) ? realpathSync(file) : file}.moved`;

/** Marks a ledger as copied to another place, named without a password. The mark is on disk when this returns. */
export function markMoved(file: string, place: string, nowMs: number): void {
  const mark = moveMark(file);
  writeFileSync(mark, `${place} at ${new Date(nowMs).toISOString()}\n`, { flush: true });
  const folder = openSync(dirname(mark), 'r');
  try {
    fsyncSync(folder);
  } finally {
    closeSync(folder);
  }
}

/** Where and when a ledger was copied to last, or null. */
export function movedTo(file: string): string | null {
  const mark = moveMark(file);
  return existsSync(mark) ? readFileSync(mark, 'utf8').trim() : null;
}

/** Throws StartRefused for a ledger that was copied to another place: a service on it would sell again what is already sold. */
export function refuseMoved(file: string): void {
  const to = movedTo(file);
  if (to === null) return;
  const why = `${file} was copied to ${to}, and would sell again what is sold there`;
  const undo = `to serve from the file, stop every service on that database and delete ${moveMark(file)}`;
  throw new StartRefused(`${why}: set LEDGER_URL, or, ${undo}`);
}
