import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { migrate } from '../../../../src/lib/sqlite-file.ts';
import { stepsOf } from '../../../../src/store/db/migrate.ts';
import { openLedgerDatabase } from '../../../../src/store/db/sqlite.ts';
import { storesOf } from '../../../support/ledger/fresh-ledger.ts';
import { hash32, reservation } from '../../../support/ledger/ledger-rows.ts';

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'authorizations-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** A ledger's file of the previous version. */
function openBefore(file: string): Database.Database {
  const db = new Database(file);
  migrate(
    db,
    stepsOf('sqlite').filter(({ version }) => version < 14),
  );
  return db;
}

test('a ledger from before authorizations were hashed keeps its payments, has null in the new columns, and can sell', async () => {
  const file = join(folder, 'ledger.db');
  const before = openBefore(file);
  const put = before.prepare(
    `INSERT INTO usdc_payments (id, network, contract, payer, nonce, state, boot_id, amount, pay_to, valid_after,
                                valid_before, request_hash, client_hash, reserved_at, reason)
     VALUES (@id, 'eip155:5042', @contract, @payer, @nonce, @state, 'b', 1000, @payer, '0', '1', @nonce, @nonce, 1, @reason)`,
  );
  const key = { contract: Buffer.alloc(20, 0x36), payer: Buffer.alloc(20, 9) };
  put.run({ ...key, id: 'paid', nonce: hash32('paid'), state: 'settled', reason: null });
  put.run({ ...key, id: 'reverted', nonce: hash32('reverted'), state: 'failed', reason: 'reverted' });
  before
    .prepare("INSERT INTO relayer_spending (day, wei, gas, transactions, payments) VALUES ('2026-11-21', '5', 1, 1, 1)")
    .run();
  before.close();

  const db = openLedgerDatabase(file);
  const store = storesOf(db).payments;
  const unknown = { authorizationHash: null, price: null, charged: null, payerHasCode: null };
  expect(await store.get('paid')).toMatchObject({ state: 'settled', amount: 1000n, ...unknown });
  expect(await storesOf(db).spending.spentOn('2026-11-21')).toEqual({
    wei: 5n,
    failedWei: 0n,
    gas: 1n,
    transactions: 1,
    payments: 1,
  });
  // A null hash matches no presentation.
  expect(await store.reserve(reservation('again', 'reverted'), 0, 'reverted')).toBe(false);
  expect(await store.reserve(reservation('next', 'next'), 0, null)).toBe(true);
  await store.close();
});

test.each([
  ['a hash of another length', "authorization_hash = x'00'"],
  ['a price of nothing', 'price = 0'],
  ['a negative payment', 'charged = -1'],
  ['a third answer whether there is code', 'payer_has_code = 2'],
])('no row holds %s', async (_, change) => {
  const db = openLedgerDatabase(join(folder, 'ledger.db'));
  const store = storesOf(db).payments;
  await store.reserve(reservation('a', 'a'), 0, null);
  expect(() => db.exec(`UPDATE usdc_payments SET ${change}`)).toThrow(/CHECK/);
  db.exec('UPDATE usdc_payments SET price = 1, charged = 0, payer_has_code = 1, authorization_hash = zeroblob(32)');
  await store.close();
});
