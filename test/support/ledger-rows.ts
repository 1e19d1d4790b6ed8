import { createHash, randomBytes } from 'node:crypto';
import type { NewPayment } from '../../src/store/ledger-port.ts';

/** Thirty-two bytes that are always the same for the same name. */
export const hash32 = (name: string): Uint8Array => createHash('sha256').update(name).digest();

/** A reservation of an authorization by name; everything else of it fits every rule. */
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
    requestHash: randomBytes(32),
    clientHash: randomBytes(32),
    identifierHash: null,
    reservedAt: 1_800_000_000_000,
    ...more,
  };
}
