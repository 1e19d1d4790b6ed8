import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { openLedgerDatabase, type Sqlite } from '../../../src/store/database.ts';
import { createRelayerSpending } from '../../../src/store/relayer-spending.ts';

let folder: string;
let open: Sqlite[];
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'spending-'));
  open = [];
});
afterEach(() => {
  for (const db of open) db.close();
  rmSync(folder, { recursive: true });
});
function openStore() {
  const db = openLedgerDatabase(join(folder, 'ledger.db'));
  open.push(db);
  return createRelayerSpending(db);
}

const one = { wei: 3n, gas: 100n, transactions: 1, payments: 2 };

test('adds up by day, in more than 64 bits, and every process sees it', async () => {
  const [store, other] = [openStore(), openStore()];
  await store.add('2026-11-21', { ...one, wei: 2n ** 70n });
  await other.add('2026-11-21', one);
  await store.add('2026-11-22', one);
  expect(await other.spentOn('2026-11-21')).toEqual({ wei: 2n ** 70n + 3n, gas: 200n, transactions: 2, payments: 4 });
  expect(await store.spentOn('2026-11-22')).toEqual(one);
});

test('a day on which nothing was spent is zeros, and a day that is none is refused', async () => {
  const store = openStore();
  expect(await store.spentOn('2026-11-20')).toEqual({ wei: 0n, gas: 0n, transactions: 0, payments: 0 });
  await expect(store.add('', one)).rejects.toThrow(/CHECK/);
});
