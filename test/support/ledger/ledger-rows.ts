import { createHash, randomBytes } from 'node:crypto';
import type { Ledger } from '../../../src/payment/ledger.ts';
import type { NewPayment } from '../../../src/store/ports/payments.ts';

/** Thirty-two bytes that depend on the name alone. */
export const hash32 = (name: string): Uint8Array => createHash('sha256').update(name).digest();

/** A valid reservation of an authorization by name. */
export function reservation(id: string, nonce: string, more: Partial<NewPayment> = {}): NewPayment {
  return {
    id,
    bootId: 'boot',
    network: 'eip155:5042',
    contract: Buffer.alloc(20, 0x36),
    payer: Buffer.alloc(20, 9),
    nonce: hash32(nonce),
    amount: 500n,
    payTo: Buffer.alloc(20, 1),
    validAfter: 0n,
    validBefore: 2n ** 256n - 1n,
    authorizationHash: hash32(`authorization ${nonce}`),
    price: 500n,
    requestHash: randomBytes(32),
    route: '/v1/paid/chain/wallet',
    protocol: 'x402',
    clientHash: randomBytes(32),
    identifierHash: null,
    reservedAt: 1_800_000_000_000,
    ...more,
  };
}

type Sale = Parameters<Ledger['reserve']>[0];
type StoredIntent = Parameters<Ledger['storeIntent']>[1];

/** The same in the form in which a purchase passes it to the ledger, which adds the rest. */
export function sale(nonce: string, more: Partial<Sale> = {}): Sale {
  const { id: _id, bootId: _boot, reservedAt: _at, ...given } = reservation('', nonce);
  return { ...given, ...more };
}

/** What a served call stores before it is settled: a fresh signature of a plain account, and the reply. */
export function storedIntent(body = 'reply', more: Partial<StoredIntent> = {}): StoredIntent {
  return { signature: randomBytes(65), checkedBlock: 7, payerHasCode: false, body: Buffer.from(body), ...more };
}
