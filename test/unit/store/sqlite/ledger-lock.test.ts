import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { holdLedger } from '../../../../src/store/ledger-lock.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-lock-'));
  file = join(folder, 'ledger.lock');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('one process locks a data directory, and the next one after its release', () => {
  const first = holdLedger(file);
  expect(() => holdLedger(file)).toThrow(/another process serves the ledger/);
  first.release();
  holdLedger(file).release();
});

test('processes that a release with workers has left behind end before the next one starts', () => {
  const shared = [0, 1].map(() => {
    const db = new Database(join(folder, 'workers.lock'));
    db.exec('BEGIN DEFERRED');
    db.prepare('SELECT count(*) FROM sqlite_schema').get();
    return db;
  });
  for (const one of shared) {
    expect(() => holdLedger(file, 20)).toThrow(/processes of a service that has ended still use the ledger/);
    one.close();
  }
  // A refused attempt leaves no lock behind.
  holdLedger(file, 20).release();
});

test('a lock file that cannot be read is not taken for another process', () => {
  writeFileSync(file, 'no database'.repeat(100));
  expect(() => holdLedger(file)).toThrow('file is not a database');
});
