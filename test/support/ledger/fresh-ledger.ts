import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openLedgerDatabase, type Sqlite } from '../../../src/store/sqlite/database.ts';

let made: Buffer | undefined;

/**
 * Opens a new ledger, for tests of which many need one. Its migrations run once for all, and each test gets a copy of the file: to run them takes 30 ms
 * of processor time, and a sync each.
 */
export function openFreshLedger(file: string): Sqlite {
  writeFreshLedger(file);
  return openLedgerDatabase(file);
}

/** Puts the file of a new ledger there, for a service that opens it itself. Throws when there is a file already. */
export function writeFreshLedger(file: string): void {
  made ??= makeLedger();
  writeFileSync(file, made, { flag: 'wx' });
}

function makeLedger(): Buffer {
  const folder = mkdtempSync(join(tmpdir(), 'percall-fresh-'));
  const file = join(folder, 'ledger.db');
  // Closing the last connection moves the log into the file.
  openLedgerDatabase(file).close();
  const bytes = readFileSync(file);
  rmSync(folder, { recursive: true });
  return bytes;
}
