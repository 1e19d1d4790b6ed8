import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Sqlite } from '../../../../src/lib/sqlite-file.ts';
import { COPY_TABLES } from '../../../../src/store/copy.ts';
import { openTestLedger } from '../../../support/ledger/fresh-ledger.ts';

let folder: string;
let db: Sqlite;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'percall-tables-'));
  db = openTestLedger(join(folder, 'ledger.db'));
});
afterEach(() => {
  db.close();
  rmSync(folder, { recursive: true, force: true });
});

const tables = (where = '') =>
  db
    .prepare<[], string>(`SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%' ${where}`)
    .pluck()
    .all();

test('every table of a ledger is copied, none twice', () => {
  expect(COPY_TABLES.map(({ name }) => name).sort()).toEqual(tables().sort());
});

test('parents come before their children', () => {
  const children = tables("AND sql LIKE '%REFERENCES%'");
  expect(children.length).toBeGreaterThan(3);
  const place = (table: string) => COPY_TABLES.findIndex(({ name }) => name === table);
  for (const child of children) {
    const parents = db.prepare<[string], string>('SELECT "table" FROM pragma_foreign_key_list(?)').pluck().all(child);
    for (const parent of parents) expect(place(parent), `${parent} of ${child}`).toBeLessThan(place(child));
  }
});

test('the tables with a row from the migrations are those with an `own` condition', () => {
  const filled = tables().filter((name) => db.prepare(`SELECT 1 FROM ${name}`).get() !== undefined);
  expect(COPY_TABLES.flatMap(({ name, own }) => (own === undefined ? [] : name)).sort()).toEqual(filled.sort());
});
