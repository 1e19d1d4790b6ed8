import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { StartRefused } from '../errors.ts';
import { flush } from './backup.ts';

// Two things keep a second service off a ledger: a lock, while a process serves the folder, and a mark, once the ledger
// was copied to another place. Both lie beside its file.

/**
 * How long a start waits for processes that a release with `WORKERS` has left behind. They exit when they notice the
 * death of their primary. This wait goes with the next release.
 */
const WORKERS_MS = 10_000;

/**
 * Locks a data directory, or throws StartRefused while another process has it: who takes over its work must find it
 * dead. It is an SQLite lock, which the system releases when a process dies.
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
 * The file that says where a ledger was copied to. It is no row: so a backup that is put in the ledger's place is
 * refused too, and deleting the file undoes it.
 */
export const moveMark = (file: string): string => `${existsSync(file) ? realpathSync(file) : file}.moved`;

/** The mark is on disk when this returns. `place` has no password. */
export function markMoved(file: string, place: string, nowMs: number): void {
  const mark = moveMark(file);
  writeFileSync(mark, `${place} at ${new Date(nowMs).toISOString()}\n`, { flush: true });
  flush(dirname(mark));
}

/** Where and when a ledger was copied to last, or null. */
export function movedTo(file: string): string | null {
  const mark = moveMark(file);
  return existsSync(mark) ? readFileSync(mark, 'utf8').trim() : null;
}

/** Throws StartRefused for a ledger that was copied to another place. */
export function refuseMoved(file: string): void {
  const to = movedTo(file);
  if (to === null) return;
  const why = `${file} was copied to ${to}, and would sell again what is sold there`;
  const undo = `to serve from the file, stop every service on that database and delete ${moveMark(file)}`;
  throw new StartRefused(`${why}: set LEDGER_URL, or, ${undo}`);
}
