import { mkdirSync, mkdtempSync, rmdirSync, rmSync, statSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Sqlite } from '../../../../src/lib/sqlite-file.ts';
import { groupOf } from '../../../../src/store/db/group-commit.ts';
import type { OpenDatabase } from '../../../../src/store/db/port.ts';
import { openSqlite } from '../../../../src/store/db/sqlite.ts';
import { openTestLedger } from '../../../support/ledger/fresh-ledger.ts';

// Whether the ledger's file can be written is asked by `ping`: with a write only after one has failed.

let folder: string;
let file: string;
let db: Sqlite;
let ledger: OpenDatabase;
let other: Sqlite;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'ledger-ping-'));
  file = join(folder, 'ledger.db');
  db = openTestLedger(file);
  db.exec('CREATE TABLE notes (bytes BLOB) STRICT');
  ledger = openSqlite(db);
  other = new Database(file);
});
afterEach(async () => {
  other.close();
  await ledger.close();
  rmSync(folder, { recursive: true });
});

/** Makes a batch fail, as on a full disk. */
const fail = () =>
  expect(
    groupOf(db).commit(() => {
      throw new Database.SqliteError('database or disk is full', 'SQLITE_FULL');
    }),
  ).rejects.toMatchObject({ code: 'ledger_unavailable' });
/** What another connection sees change with each commit. */
const version = (): unknown => other.pragma('data_version', { simple: true });

test('reads the payments', async () => {
  await ledger.ping();
  db.exec('ALTER TABLE usdc_payments RENAME TO gone');
  await expect(ledger.ping()).rejects.toThrow('no such table');
  db.exec('ALTER TABLE gone RENAME TO usdc_payments');
});

test('writes nothing while the writes succeed, and once after one has failed', async () => {
  const before = version();
  await ledger.ping();
  expect(version()).toBe(before);
  await fail();
  await ledger.ping();
  const after = version();
  expect(after).not.toBe(before);
  await ledger.ping();
  expect(version()).toBe(after);
});

test('looks for room before it writes, says what is in its way, and looks until there is room', async () => {
  const room = `${file}-room`;
  // What is written there finds no room, and the link is removed like the file.
  symlinkSync('/dev/full', room);
  await ledger.ping();
  await fail();
  const failure = await ledger.ping().then(
    () => null,
    (error: Error) => error,
  );
  expect(failure?.message).toMatch(/^the ledger cannot be written: ENOSPC: no space left on device/);
  expect(failure?.cause).toMatchObject({ code: 'ENOSPC' });
  expect(() => statSync(room)).toThrow('ENOENT');
  mkdirSync(room);
  await expect(ledger.ping()).rejects.toThrow('EISDIR');
  rmdirSync(room);
  await ledger.ping();
  mkdirSync(room);
  await ledger.ping();
});

test('says why the file itself refuses the write', async () => {
  await fail();
  const lock = new Database(file);
  lock.exec('BEGIN IMMEDIATE');
  db.pragma('busy_timeout = 0');
  await expect(ledger.ping()).rejects.toThrow('the ledger cannot be written: database is locked');
  lock.exec('ROLLBACK');
  lock.close();
  await ledger.ping();
});

test('copies a log that a reader kept long into the file, and leaves a short one to SQLite', async () => {
  const write = db.prepare('INSERT INTO notes VALUES (randomblob(?))');
  const size = () => statSync(file).size;
  const begin = size();
  write.run(100_000);
  await ledger.ping();
  expect(size()).toBe(begin);
  other.exec('BEGIN');
  other.prepare('SELECT count(*) FROM notes').get();
  db.pragma('wal_autocheckpoint = 10');
  write.run(400_000);
  other.exec('COMMIT');
  await ledger.ping();
  expect(size()).toBeGreaterThan(begin + 400_000);
});
