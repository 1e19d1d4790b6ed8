import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLookup } from '../../../src/payment/lookup.ts';
import { transactionText } from '../../../src/payment/transaction-id.ts';
import type { LedgerStores } from '../../../src/store/ports/stores.ts';
import { openSqliteStores } from '../../../src/store/sqlite/open-stores.ts';
import { hash32, reservation } from '../../support/ledger/ledger-rows.ts';

let stores: LedgerStores;
/** Payments whose batch was asked for. */
let asked: string[];
let lookup: ReturnType<typeof createLookup>;
beforeEach(() => {
  stores = openSqliteStores(':memory:');
  asked = [];
  const { payments, transfers, lightning: claims } = stores;
  const batchOf = (id: string) => {
    asked.push(id);
    return transfers.batchOf(id);
  };
  lookup = createLookup({
    ...{ payments, claims, lightningNetworks: ['lnbtc:0'], explorerUrl: 'https://explorer.example' },
    transfers: { ...transfers, batchOf },
  });
});
afterEach(() => stores.close());

const transfer = hash32('transfer').subarray(0, 16);
const hex = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString('hex')}`;

async function settle(id: string, transaction: Uint8Array): Promise<void> {
  await stores.payments.reserve(reservation(id, id), 0, null);
  await stores.payments.move(id, ['reserved'], 'settling', {});
  await stores.payments.move(id, ['settling'], 'settled', { transaction, endedAt: 1_800_000_001_000 });
}

test('many payments of one transaction on the chain are told with it, and no batch is asked for', async () => {
  const transaction = hash32('transaction');
  for (const id of ['a', 'b', 'c']) await settle(id, transaction);
  await stores.payments.reserve(reservation('open', 'open'), 0, null);
  const { payments } = await lookup(hex(transaction));
  expect(payments).toEqual(
    Array.from({ length: 3 }, () => ({
      ...{ rail: 'usdc', amount: '500', state: 'settled', transaction: hex(transaction), block: null },
      ...{ at: 1_800_000_001, explorerUrl: `https://explorer.example/tx/${hex(transaction)}` },
    })),
  );
  expect((await lookup(hex(hash32('open')))).payments).toMatchObject([{ state: 'reserved', transaction: null }]);
  expect(asked).toEqual([]);
});

test('a Gateway transfer is told by its id until its batch is known, and then with the batch, by either of them', async () => {
  await settle('gateway', transfer);
  const id = transactionText(transfer) ?? '';
  expect((await lookup(id)).payments).toMatchObject([{ transaction: id, explorerUrl: null }]);
  const batch = hash32('batch');
  await stores.transfers.note('gateway', { status: 'completed', transaction: batch, nextCheckAt: null });
  const told = [{ transaction: hex(batch), explorerUrl: `https://explorer.example/tx/${hex(batch)}` }];
  for (const by of [id, hex(batch), hex(hash32('gateway'))]) expect((await lookup(by)).payments).toMatchObject(told);
  expect(asked).toEqual(Array(4).fill('gateway'));
});

test('what the ledger does not know, or what is no name of a payment, is not found', async () => {
  for (const id of [hex(hash32('nobody')), transactionText(transfer) ?? '', 'a', '0x12']) {
    await expect(lookup(id)).rejects.toMatchObject({ status: 404, code: 'payment_not_found' });
  }
});
