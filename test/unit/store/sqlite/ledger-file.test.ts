import { mkdtempSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openChainDatabase } from '../../../../src/collector/store/database.ts';
import { openLedgerDatabase } from '../../../../src/store/db/sqlite.ts';

const MIB = 2 ** 20;
let folder: string;
let file: string;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-ledger-file-'));
  file = join(folder, 'ledger.db');
});
afterEach(() => rmSync(folder, { recursive: true }));

test.each(['signature', 'settling_at'])(
  'a ledger of the newest version that lacks the column %s is refused',
  (column) => {
    openLedgerDatabase(file).close();
    const damaged = new Database(file);
    // The index and the checks that name a column go with it.
    damaged.exec(
      `CREATE TABLE kept AS SELECT * FROM usdc_payments; DROP TABLE usdc_payments; ALTER TABLE kept RENAME TO usdc_payments`,
    );
    damaged.exec(`ALTER TABLE usdc_payments DROP COLUMN ${column}`);
    damaged.close();
    expect(() => openLedgerDatabase(file)).toThrow(`lacks usdc_payments.${column}`);
  },
);

test('a file that is no database is refused by its path', () => {
  writeFileSync(file, 'no database, and longer than a header of SQLite, which has a hundred bytes '.repeat(2));
  expect(() => openLedgerDatabase(file)).toThrow(`${file}: file is not a database (SQLITE_NOTADB)`);
  expect(() => openChainDatabase(file)).toThrow(`${file}: file is not a database (SQLITE_NOTADB)`);
});

test('a log that a long read let grow is cut back, so that its length shows what is not copied', () => {
  const db = openLedgerDatabase(file);
  db.exec('CREATE TABLE notes (text BLOB) STRICT');
  const reader = new Database(file);
  reader.exec('BEGIN');
  reader.prepare('SELECT count(*) FROM notes').get();
  const write = db.prepare('INSERT INTO notes VALUES (randomblob(?))');
  for (let times = 0; times < 10; times += 1) write.run(4 * MIB);
  const bytes = () => statSync(`${file}-wal`).size;
  expect(bytes()).toBeGreaterThan(40 * MIB);
  reader.exec('COMMIT');
  reader.close();
  db.pragma('wal_checkpoint(PASSIVE)');
  write.run(1);
  expect(bytes()).toBeLessThanOrEqual(32 * MIB);
  db.close();
});
