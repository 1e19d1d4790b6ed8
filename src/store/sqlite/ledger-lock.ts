import { mkdirSync } from 'node:fs';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';

/** API processes leave as soon as they notice that the one above them is gone; one that waits for a disk notices when the disk answers. */
const ORPHANS_MS = 10_000;

/**
 * Holds a data directory for this process alone, or throws: a process that starts takes over what another left, which must be dead,
 * its API processes too; those get some seconds to leave.
 * The lock is SQLite's own on a file beside the ledger: the system gives it back when a process dies, however it dies.
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

/** Shares a data directory with the process that holds it and its other API processes: until release or death, no later start gets it. */
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
    throw new Error(why, { cause });
  }
}
