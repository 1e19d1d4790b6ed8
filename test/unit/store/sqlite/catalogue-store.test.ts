import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Sqlite } from '../../../../src/lib/sqlite-file.ts';
import type { CatalogueStore } from '../../../../src/store/ports/stores.ts';
import { openTestLedger, storesOf } from '../../../support/ledger/fresh-ledger.ts';

let folder: string;
let db: Sqlite;
let store: CatalogueStore;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'catalogue-store-'));
  db = openTestLedger(join(folder, 'ledger.db'));
  store = storesOf(db).catalogue;
});
afterEach(() => {
  db.close();
  rmSync(folder, { recursive: true });
});

const rows = () => db.prepare('SELECT count(*) AS count FROM catalogue_copy').get();

describe('the store of the catalogue’s copy', () => {
  test('of an unchanged text notes the time alone', async () => {
    await store.save({ readAt: 1, entries: '["a"]' });
    const changes = () => db.prepare("SELECT sum(pgsize) AS bytes FROM dbstat WHERE name = 'catalogue_copy'").get();
    const before = changes();
    await store.save({ readAt: 2, entries: '["a"]' });
    expect(await store.load()).toEqual({ readAt: 2, entries: '["a"]' });
    expect([changes(), rows()]).toEqual([before, { count: 1 }]);
  });

  test('keeps the old one when the new one cannot be stored', async () => {
    await store.save({ readAt: 1, entries: '["a"]' });
    db.exec("CREATE TRIGGER full BEFORE INSERT ON catalogue_copy BEGIN SELECT raise(ABORT, 'disk full'); END");
    await expect(store.save({ readAt: 2, entries: '["b"]' })).rejects.toThrow('disk full');
    expect(await store.load()).toEqual({ readAt: 1, entries: '["a"]' });
  });
});
