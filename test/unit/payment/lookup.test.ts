import { afterEach, beforeEach, expect, test } from 'vitest';
import { createLookup } from '../../../src/payment/receipt.ts';
import { transactionText, transferIdBytes } from '../../../src/payment/settler.ts';
import { openSqliteStores } from '../../../src/store/open.ts';
import type { LedgerStores } from '../../../src/store/ports/stores.ts';
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
    payments,
    claims,
    lightningNetworks: ['lnbtc:0'],
    explorerUrl: 'https://explorer.example',
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

test('a chain transaction finds all of its payments, and no batch is read', async () => {
  const transaction = hash32('transaction');
  for (const id of ['a', 'b', 'c']) await settle(id, transaction);
  await stores.payments.reserve(reservation('open', 'open'), 0, null);
  const { payments } = await lookup(hex(transaction));
  expect(payments).toEqual(
    Array.from({ length: 3 }, () => ({
      rail: 'usdc',
      protocol: 'x402',
      amount: '500',
      state: 'settled',
      transaction: hex(transaction),
      block: null,
      at: 1_800_000_001,
      explorerUrl: `https://explorer.example/tx/${hex(transaction)}`,
    })),
  );
  expect((await lookup(hex(hash32('open')))).payments).toMatchObject([{ state: 'reserved', transaction: null }]);
  expect(asked).toEqual([]);
});

test('a Gateway transfer is found by its id, and by its batch too once the batch is known', async () => {
  await settle('gateway', transfer);
  const id = transactionText(transfer) ?? '';
  expect((await lookup(id)).payments).toMatchObject([{ transaction: id, explorerUrl: null }]);
  const batch = hash32('batch');
  await stores.transfers.note('gateway', { status: 'completed', transaction: batch, nextCheckAt: null });
  const reported = [{ transaction: hex(batch), explorerUrl: `https://explorer.example/tx/${hex(batch)}` }];
  for (const by of [id, hex(batch), hex(hash32('gateway'))])
    expect((await lookup(by)).payments).toMatchObject(reported);
  expect(asked).toEqual(Array(4).fill('gateway'));
});

test('a payment is shown by a transaction’s hash or a transfer’s id, and by neither before the Gateway has made one', () => {
  expect(transactionText(Buffer.alloc(32, 1))).toBe(`0x${'01'.repeat(32)}`);
  const id = '0b7c4b0c-1f4e-4c5e-9d53-0d1c2b3a4f5e';
  expect(transactionText(transferIdBytes(id.toUpperCase()))).toBe(id);
  expect([transactionText(null), transactionText(Uint8Array.of(0))]).toEqual([null, null]);
  expect(transferIdBytes(`${id}0`)).toBeNull();
});

test('an identifier that the ledger does not know, or that identifies no payment, is not found', async () => {
  for (const id of [hex(hash32('nobody')), transactionText(transfer) ?? '', 'a', '0x12']) {
    await expect(lookup(id)).rejects.toMatchObject({ status: 404, code: 'payment_not_found' });
  }
});

test('a claim is found by its payment hash on every Lightning network that is sold on, with its delivery time and no explorer link', async () => {
  const paymentHash = hash32('claimed');
  const key = { network: 'lnbtc:0', paymentHash };
  const terms = { payTo: Buffer.alloc(33, 2), amountMsat: 25_000n };
  const claimedAt = 1_800_000_000_999;
  const grant = {
    requestHash: hash32('request'),
    route: '/v1/lightning/test',
    protocol: 'x402',
    redeemUntil: claimedAt + 10_000,
  };
  const times = { claimedAt, keepUntil: claimedAt + 10_000, account: null };
  const claim = {
    rail: 'lightning',
    protocol: 'x402',
    amount: '25000',
    transaction: hex(paymentHash).slice(2),
    block: null,
    explorerUrl: null,
  };
  await stores.lightning.claim({ ...key, network: 'lnbtc:1', ...terms, ...times, grant: null });
  await expect(lookup(hex(paymentHash))).rejects.toMatchObject({ status: 404 });
  await stores.lightning.claim({ ...key, ...terms, ...times, grant });
  const reported = { payments: [{ ...claim, state: 'claimed', at: 1_800_000_000 }] };
  for (const by of [hex(paymentHash), hex(paymentHash).slice(2), hex(paymentHash).slice(2).toUpperCase()])
    expect(await lookup(by)).toEqual(reported);
  await stores.lightning.delivered(key, claimedAt + 5000, claimedAt + 10_000);
  expect(await lookup(hex(paymentHash))).toEqual({ payments: [{ ...claim, state: 'delivered', at: 1_800_000_005 }] });
});

test('a claim that the facilitator made for another seller is shown as claimed', async () => {
  const paymentHash = hash32('facilitated');
  const times = { claimedAt: 1_800_000_000_000, keepUntil: 1_800_000_001_000, account: null };
  const terms = { payTo: Buffer.alloc(33, 2), amountMsat: 1n };
  await stores.lightning.claim({ network: 'lnbtc:0', paymentHash, ...terms, ...times, grant: null });
  expect((await lookup(hex(paymentHash))).payments).toMatchObject([
    { rail: 'lightning', state: 'claimed', amount: '1' },
  ]);
});

test('a mined payment is shown with its block, and without a link where no explorer is configured', async () => {
  const transaction = hash32('mined');
  await stores.payments.reserve(reservation('mined', 'mined'), 0, null);
  await stores.payments.move('mined', ['reserved'], 'settling', {});
  await stores.payments.move('mined', ['settling'], 'settled', { transaction, block: 77, endedAt: 1_800_000_001_000 });
  const { payments, transfers, lightning: claims } = stores;
  const bare = createLookup({ payments, claims, transfers, lightningNetworks: [], explorerUrl: null });
  expect((await bare(hex(transaction))).payments).toMatchObject([{ block: 77, explorerUrl: null }]);
});

test('a payment whose row is deleted during the lookup is not found', async () => {
  await settle('gone', transfer);
  await stores.transfers.note('gone', { status: 'completed', transaction: hash32('batch'), nextCheckAt: null });
  const { payments, transfers, lightning: claims } = stores;
  const forgetful = createLookup({
    claims,
    transfers,
    lightningNetworks: [],
    explorerUrl: null,
    payments: { ...payments, get: async () => null },
  });
  await expect(forgetful(hex(hash32('batch')))).rejects.toMatchObject({ status: 404 });
});

test('an identifier of a wrong form is refused without a ledger read', async () => {
  const away = async () => {
    throw new Error('asked');
  };
  const idle = createLookup({
    payments: { findByHash: away, get: away },
    transfers: { batchOf: away, paymentsIn: away },
    claims: { findClaim: away },
    lightningNetworks: ['lnbtc:0'],
    explorerUrl: null,
  });
  await expect(idle('a')).rejects.toMatchObject({ status: 404, code: 'payment_not_found' });
  await expect(idle(hex(hash32('some')))).rejects.toThrow('asked');
});

test('an open payment is shown with the second in which it was reserved', async () => {
  await stores.payments.reserve(reservation('open', 'open', { reservedAt: 1_800_000_000_999 }), 0, null);
  expect((await lookup(hex(hash32('open')))).payments).toMatchObject([{ state: 'reserved', at: 1_800_000_000 }]);
});

test.each(['x', 'xx'])('a hash with %j in front of it is refused', async (front) => {
  await settle('paid', hash32('transaction'));
  await expect(lookup(`${front}${hex(hash32('transaction')).slice(2)}`)).rejects.toMatchObject({ status: 404 });
  await expect(lookup(`${hex(hash32('transaction'))}${front}`)).rejects.toMatchObject({ status: 404 });
});
