import { mkdirSync } from 'node:fs';
import { dirname } from 'node:path';
import Database from 'better-sqlite3';

/**
 * Holds a data directory for this process alone, or throws: a process that starts takes over what another left, which must be dead.
 * The lock is SQLite's own on a file beside the ledger: the system gives it back when a process dies, however it dies.
 */
export function holdLedger(file: string): { release(): void } {
  mkdirSync(dirname(file), { recursive: true });
  const db = new Database(file, { timeout: 0 });
  try {
    db.exec('BEGIN EXCLUSIVE');
  } catch (cause) {
    db.close();
    throw new Error(`another process serves the ledger beside ${file}: stop it first`, { cause });
  }
  return { release: () => void db.close() };
}
