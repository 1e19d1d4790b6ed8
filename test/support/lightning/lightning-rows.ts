import { createHash } from 'node:crypto';
import type { ClaimAccount, InvoiceRecord, NewClaim, ProofKey } from '../../../src/store/ports/lightning.ts';

export const NETWORK = 'lnbtc:000000000019d6689c085ae165831e93';
export const HOUR = 3_600_000;
export const DAY = 24 * HOUR;
/** Noon of a UTC day, and that day. */
export const NOON = Date.UTC(2026, 2, 3, 12);
export const TODAY = '2026-03-03';

/** The SHA-256 of a name. */
export const hashOf = (name: string): Buffer => createHash('sha256').update(name).digest();
export const keyOf = (name: string): ProofKey => ({ network: NETWORK, paymentHash: hashOf(name) });
/** Bytes in the form of a node's compressed key. */
export const nodeOf = (name: string): Buffer => Buffer.concat([Buffer.of(2), hashOf(`node ${name}`)]);

export const invoiceOf = (name: string, more: Partial<InvoiceRecord> = {}): InvoiceRecord => ({
  ...keyOf(name),
  requestHash: hashOf(`request ${name}`),
  amountMsat: 25_000n,
  payTo: nodeOf('ours'),
  issuedAt: NOON,
  forgetAt: NOON + 420_000,
  ...more,
});

/** A claim through our own routes. It grants the request of the same name for seven days. */
export const grantOf = (name: string, more: Partial<NewClaim> = {}): NewClaim => ({
  ...keyOf(name),
  payTo: nodeOf('ours'),
  amountMsat: 25_000n,
  claimedAt: NOON,
  keepUntil: NOON + 360_000 + HOUR,
  grant: {
    requestHash: hashOf(`request ${name}`),
    redeemUntil: NOON + 7 * DAY,
    route: '/v1/lightning/chain/wallet',
    protocol: 'x402',
  },
  account: null,
  ...more,
});

/** A facilitator's claim. It grants nothing and counts against the limits. */
export const accountedOf = (
  name: string,
  account: Partial<ClaimAccount> = {},
  more: Partial<NewClaim> = {},
): NewClaim => ({
  ...grantOf(name),
  payTo: nodeOf('theirs'),
  grant: null,
  account: {
    day: TODAY,
    clientHash: hashOf('client'),
    payeeClientHash: hashOf('client'),
    dailyCap: 20_000,
    clientCap: 2000,
    payeeCap: 20_000,
    openCap: 20_000,
    ...account,
  },
  ...more,
});
