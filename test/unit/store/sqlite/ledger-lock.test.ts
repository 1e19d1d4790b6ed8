import { existsSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { StartRefused } from '../../../../src/errors.ts';
import { holdLedger, markMoved, movedTo, moveMark, refuseMoved } from '../../../../src/store/ledger-lock.ts';
import { openFiles } from '../../../support/open-files.ts';

let folder: string;
let file: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-lock-'));
  file = join(folder, 'ledger.lock');
});
afterEach(() => rmSync(folder, { recursive: true, force: true }));

test('one process locks a data directory, and the next one after its release', () => {
  const first = holdLedger(file);
  expect(() => holdLedger(file)).toThrow(
    expect.objectContaining({
      message: expect.stringMatching(/^another process serves the ledger/),
      cause: expect.objectContaining({ code: 'SQLITE_BUSY' }),
    }),
  );
  expect(() => holdLedger(file)).toThrow(StartRefused);
  first.release();
  holdLedger(file).release();
  expect([openLocks(), existsSync(join(folder, 'workers.lock'))]).toEqual([0, false]);
});

/** How often this process has a lock file open. */
const openLocks = (): number => openFiles().filter((path) => path === file).length;

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

test('a ledger that was copied elsewhere is refused with where, when and what undoes it, by either of its names', () => {
  const ledger = join(folder, 'ledger.db');
  const link = join(folder, 'link.db');
  writeFileSync(ledger, '');
  symlinkSync(ledger, link);
  expect(movedTo(link)).toBeNull();
  refuseMoved(link);
  markMoved(link, 'db.example:5432/ledger', Date.UTC(2026, 10, 29));
  const mark = `${ledger}.moved`;
  const place = 'db.example:5432/ledger at 2026-11-29T00:00:00.000Z';
  expect([moveMark(link), movedTo(link), movedTo(ledger)]).toEqual([mark, place, place]);
  expect(readFileSync(mark, 'utf8')).toBe(`${place}\n`);
  expect(() => refuseMoved(ledger)).toThrow(
    expect.objectContaining({
      message:
        `${ledger} was copied to ${place}, and would sell again what is sold there: set LEDGER_URL, or, ` +
        `to serve from the file, stop every service on that database and delete ${mark}`,
    }),
  );
  expect(() => refuseMoved(ledger)).toThrow(StartRefused);
  rmSync(mark);
  refuseMoved(ledger);
});

test('a ledger that is not there yet was copied nowhere', () => {
  const missing = join(folder, 'none.db');
  expect([moveMark(missing), movedTo(missing)]).toEqual([`${missing}.moved`, null]);
});
