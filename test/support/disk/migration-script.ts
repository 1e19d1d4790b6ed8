import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { migrate } from '../../../src/lib/sqlite-file.ts';
import { stepsOf } from '../../../src/store/db/migrate.ts';
import { openLedgerDatabase } from '../../../src/store/db/sqlite.ts';
import { hash32 } from '../ledger/ledger-rows.ts';
import { fingerprint } from './ledger-script.ts';

const STATES = ['reserved', 'settling', 'unknown', 'settled', 'failed'] as const;

/** The ledger of an older program with a payment in each state, or none at all. */
export type MigrationName = 'migration' | 'creation';
const BASE = { migration: 13, creation: 0 } as const;

/** Writes the file that a start has to migrate. A creation has none. */
export function writeOldLedger(name: MigrationName, folder: string): void {
  if (name === 'creation') return;
  const db = new Database(join(folder, 'ledger.db'));
  db.pragma('journal_mode = WAL');
  migrate(db, stepsUpTo(BASE[name]));
  const put = db.prepare(
    `INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after, valid_before, signature,
                                request_hash, client_hash, reserved_at, ended_at)
     VALUES (@id, 'eip155:5042', @address, @address, @nonce, @id, 'b', 1000, @address, '0', '1', @signature, @nonce, @nonce, 1, @endedAt)`,
  );
  for (const id of STATES) {
    const isOpen = id === 'settling' || id === 'unknown';
    const ends = { signature: isOpen ? Buffer.alloc(65, 1) : null, endedAt: id === 'settled' ? 5 : null };
    put.run({ id, address: Buffer.alloc(20, 9), nonce: hash32(id), ...ends });
  }
  db.close();
}

/** The fingerprints of a ledger before its migrations and after each. */
export function migrationStates(name: MigrationName, work: string): string[] {
  const folder = join(work, 'migrated');
  mkdirSync(folder, { recursive: true });
  writeOldLedger(name, folder);
  const db = new Database(join(folder, 'ledger.db'));
  const states = [fingerprint(db)];
  for (const { version } of stepsOf('sqlite').filter((one) => one.version > BASE[name])) {
    migrate(db, stepsUpTo(version));
    states.push(fingerprint(db));
  }
  db.close();
  return states;
}

/** What is wrong with a ledger whose start was interrupted. Opens it as the next start does. */
export function migrationFaults(folder: string, isOpened: boolean, states: readonly string[]): string[] {
  const faults: string[] = [];
  const file = join(folder, 'ledger.db');
  const left = new Database(file);
  if (left.pragma('integrity_check', { simple: true }) !== 'ok') faults.push('the file is damaged');
  const done = states.indexOf(fingerprint(left));
  left.close();
  if (done < 0) faults.push('a migration was done in part');
  else if (isOpened && done < states.length - 1) faults.push('a migration was lost after the start');
  const next = openLedgerDatabase(file);
  if (fingerprint(next) !== states.at(-1)) faults.push('the next start does not finish the migrations');
  next.close();
  return faults;
}

const stepsUpTo = (last: number) => stepsOf('sqlite').filter(({ version }) => version <= last);
