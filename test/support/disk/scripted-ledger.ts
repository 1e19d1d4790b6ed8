import { copyFileSync, existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Sqlite } from '../../../src/lib/sqlite-file.ts';
import { openLedgerDatabase } from '../../../src/store/db/sqlite.ts';
import { createSqliteStores } from '../../../src/store/open.ts';
import type { LedgerStores } from '../../../src/store/ports/stores.ts';
import { fingerprint, SCRIPTS, type ScriptName, soldTwice } from './ledger-script.ts';

/** Pages of log after which SQLite copies them into the file. So few that a script of some steps does so several times. */
const PAGES = 12;

/** An open ledger, and the connection below it. */
export interface Opened {
  readonly db: Sqlite;
  readonly stores: LedgerStores;
}

/** Opens the ledger of a folder. Without `isSynced` its commits wait for no disk. */
export function openScripted(folder: string, isSynced = true): Opened {
  const db = openLedgerDatabase(join(folder, 'ledger.db'));
  if (!isSynced) db.pragma('synchronous = OFF');
  db.pragma(`wal_autocheckpoint = ${PAGES}`);
  return { db, stores: createSqliteStores(db) };
}

/** Makes the folder anew with these files in it. */
export function refill(folder: string, files: ReadonlyMap<string, Buffer>): void {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  for (const [name, bytes] of files) writeFileSync(join(folder, name), bytes);
}

/** The fingerprints of a ledger before the first step of a script and after each. */
export async function statesOf(script: ScriptName, folder: string): Promise<string[]> {
  const { db, stores } = openScripted(folder);
  const states = [fingerprint(db)];
  for (const step of SCRIPTS[script]) {
    await step.run(stores);
    states.push(fingerprint(db));
  }
  await stores.close();
  return states;
}

/** What is wrong with a ledger that may have made `acknowledged` steps or one more. Finishes the script on it and closes it. */
export async function faultsOf(
  script: ScriptName,
  { db, stores }: Opened,
  acknowledged: number,
  states: readonly string[],
): Promise<string[]> {
  const faults: string[] = [];
  if (db.pragma('integrity_check', { simple: true }) !== 'ok') {
    await stores.close();
    return ['the file is damaged'];
  }
  const done = states.indexOf(fingerprint(db));
  if (done < 0) faults.push('a step was done in part');
  else if (done < acknowledged) faults.push(`lost: ${SCRIPTS[script][done]?.name}`);
  else if (done > acknowledged + 1) faults.push('steps were done that nobody asked for');
  faults.push(...(await soldTwice(script, acknowledged, stores, db)));
  if (faults.length === 0) {
    for (const step of SCRIPTS[script].slice(done)) await step.run(stores);
    if (fingerprint(db) !== states.at(-1)) faults.push('the script could not be finished');
  }
  await stores.close();
  return faults;
}

/** Copies the ledger's files as a killed process leaves them: without the shared memory, which the next process makes anew. */
export function copyAsKilled(from: string, to: string): void {
  refill(to, new Map());
  for (const name of ['ledger.db', 'ledger.db-wal'])
    if (existsSync(join(from, name))) copyFileSync(join(from, name), join(to, name));
}
