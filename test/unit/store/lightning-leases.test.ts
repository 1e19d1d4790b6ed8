import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { openLedgerDatabase } from '../../../src/store/database.ts';
import { createLightningStore } from '../../../src/store/lightning-store.ts';
import { grantOf, keyOf, NOON } from '../../support/lightning-rows.ts';

test('the leases of one dead process are given back, and no living one’s', async () => {
  const folder = mkdtempSync(join(tmpdir(), 'lightning-leases-'));
  const db = openLedgerDatabase(join(folder, 'ledger.db'));
  const store = createLightningStore(db);
  const take = (name: string, holder: string) => store.takeLease(keyOf(name), holder, NOON, NOON + 60_000);
  const names = ['a', 'b', 'c'];
  await Promise.all(names.map((name) => store.claim(grantOf(name))));
  await Promise.all([take('a', 'dead:1'), take('b', 'living:1'), take('c', 'dead:2')]);
  expect(await store.releaseLeasesOf('dead')).toBe(2);
  expect(await Promise.all(names.map((name) => take(name, 'living:2')))).toEqual([true, false, true]);
  db.close();
  rmSync(folder, { recursive: true });
});
