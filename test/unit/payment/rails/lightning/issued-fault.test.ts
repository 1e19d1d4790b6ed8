import { expect, test } from 'vitest';
import type { Invoice } from '../../../../../src/payment/lightning/bolt11.ts';
import { issuedFault } from '../../../../../src/payment/lightning/issuer.ts';
import { nodeKeys } from '../../../../support/lightning/lightning-node-servers.ts';

const hash = Buffer.alloc(32, 5);
const payTo = nodeKeys('seller').key;
const requested = { currency: 'bc', amountMsat: 1000n, requestHash: hash, expirySeconds: 300, payTo } as const;
const invoice: Invoice = {
  currency: 'bc',
  amountMsat: 1000n,
  createdAt: 1_700_000_000,
  expirySeconds: 300,
  paymentHash: Buffer.alloc(32, 1),
  descriptionHashes: [hash],
  hasDescription: false,
  payee: Buffer.from(payTo, 'hex'),
};

test.each<[string, Partial<Invoice>, RegExp]>([
  ['of another network', { currency: 'tb' }, /network/],
  ['over more', { amountMsat: 1001n }, /amount/],
  ['over less', { amountMsat: 999n }, /amount/],
  ['with a description of its own', { hasDescription: true }, /inline description/],
  ['without a description hash', { descriptionHashes: [] }, /exactly one description hash/],
  ['for another request', { descriptionHashes: [Buffer.alloc(32, 6)] }, /description hash is another/],
  ['of another node', { payee: Buffer.from(nodeKeys('other').key, 'hex') }, /signed by another key/],
  ['that lasts longer', { expirySeconds: 301 }, /expiry/],
])('an invoice %s is not offered, and the reason says so', (_, change, reason) => {
  expect(issuedFault({ ...invoice, ...change }, requested, invoice.createdAt)).toMatch(reason);
});

test('an invoice that repeats its description hash is refused, even with the right one', () => {
  expect(issuedFault(invoice, requested, invoice.createdAt)).toBeNull();
  const repeated = { ...invoice, descriptionHashes: [hash, hash] };
  expect(issuedFault(repeated, requested, invoice.createdAt)).toMatch(/exactly one description hash/);
});

test('times are judged to the second: 60 s ahead and the last second of the expiry are valid', () => {
  const at = (seconds: number) => issuedFault(invoice, requested, invoice.createdAt + seconds);
  expect([at(-60), at(300)]).toEqual([null, null]);
  expect(at(-61)).toMatch(/future/);
  expect(at(301)).toMatch(/expired/);
});
