import { createHash } from 'node:crypto';
import type { ChannelConfig, ChannelState } from '../../../src/store/ports/channel-state.ts';
import type { ListingRow } from '../../../src/store/ports/market.ts';
import type { NewPayment } from '../../../src/store/ports/payments.ts';
import type { ProviderNote } from '../../../src/store/ports/stores.ts';

// The rows of the databases that the code of earlier commits made. Names give their bytes, so that a test knows what each row must say.

/** Unix milliseconds of the first row: 2026-11-21, noon UTC. */
export const AT = 1_795_262_400_000;
export const HOUR_MS = 3_600_000;
export const DAY = '2026-11-21';
export const USDC = 'eip155:5042';
export const BITCOIN = 'lnbtc:000000000019d6689c085ae165831e93';
/** Why the failed payment failed: the reason that lets its first presenter use it again. */
export const REVERTED = 'invalid_exact_evm_transaction_failed';
/** The process that wrote the rows. It is long gone. */
export const BOOT = 'boot-of-then';

/** 32 bytes that depend on the name alone. */
export const hashOf = (name: string): Buffer => createHash('sha256').update(name).digest();
export const contract = Buffer.alloc(20, 0x36);
export const payer = Buffer.alloc(20, 9);
export const signatureOf = (name: string): Buffer => Buffer.concat([hashOf(name), hashOf(`${name}, s`), Buffer.of(27)]);
export const replyOf = (name: string): Buffer => Buffer.from(`{"answer":"${name}, ü €"}`);

/** The payments by the id of their row, each with the state that it is left in. */
export const PAYMENTS = {
  'p1-reserved': 'reserved',
  'p2-settling': 'settling',
  'p3-unknown': 'unknown',
  'p4-settled': 'settled',
  'p5-failed': 'failed',
} as const;
/** A payment through Circle's Gateway: its transaction is a transfer's id of 16 bytes. */
export const GATEWAY_PAYMENT = 'p6-gateway';
export const GATEWAY_TRANSFER = hashOf('transfer').subarray(0, 16);

/** A reservation in today's form. Earlier code leaves out what it does not know. */
export function reservationOf(id: string, more: Partial<NewPayment> = {}): NewPayment {
  return {
    id,
    bootId: BOOT,
    network: USDC,
    contract,
    payer,
    nonce: hashOf(`nonce ${id}`),
    amount: 2500n,
    price: 2500n,
    payTo: Buffer.alloc(20, 1),
    validAfter: 0n,
    validBefore: 2n ** 256n - 1n,
    reservedAt: AT,
    authorizationHash: hashOf(`authorization ${id}`),
    requestHash: hashOf(`request ${id}`),
    clientHash: hashOf(`client ${id}`),
    identifierHash: id === 'p4-settled' ? hashOf('identifier') : null,
    route: '/v1/paid/chain/wallet',
    protocol: 'x402',
    ...more,
  };
}

const CHANNEL = hashOf('channel');
/** A payment channel with a deposit of 10,000 base units. */
export const channelTerms: ChannelConfig & { readonly id: Uint8Array; readonly network: string } = {
  id: CHANNEL,
  network: USDC,
  payer,
  payerAuthorizer: Buffer.alloc(20),
  receiver: Buffer.alloc(20, 1),
  receiverAuthorizer: Buffer.alloc(20, 2),
  token: contract,
  withdrawDelay: 86_400,
  salt: hashOf('salt'),
};
export const channelState: ChannelState = {
  balance: 10_000n,
  totalClaimed: 0n,
  withdrawAmount: 0n,
  withdrawAt: 0,
  refundNonce: 0n,
  block: 100,
};
export const VOUCHER_SALE = 'p7-voucher';
export const voucher = { channelId: CHANNEL, max: 700n, signature: signatureOf('voucher') };

/** The node that our invoices pay, and one of a facilitator's client. */
export const ourNode = Buffer.concat([Buffer.of(2), hashOf('our node')]);
export const theirNode = Buffer.concat([Buffer.of(3), hashOf('their node')]);
/** The proofs by name, each as it is left. The key is the hash of the name. */
export const PROOFS = { offered: null, claimed: 'claimed', delivered: 'delivered', foreign: 'foreign' } as const;
export const proofKey = (name: string) => ({ network: BITCOIN, paymentHash: hashOf(name) });

export const listing: ListingRow = {
  place: 'seller.example/v1/weather',
  domain: 'seller.example',
  listing: '{"title":"Wetter, ü"}',
  method: 'GET',
  pricedAt: AT,
  checkedAt: AT + 1,
  reason: null,
  failures: 0,
  offlineAt: null,
  dueAt: AT + HOUR_MS,
};
export const spent = { wei: 2n ** 70n, failedWei: 2n ** 60n, gas: 65_000n, transactions: 2, payments: 3 };
export const providerNote: ProviderNote = {
  host: 'rpc.example',
  kind: 'apart',
  question: 'receipt of 0x01',
  said: 'mined',
  others: 'not mined',
  sinceMs: AT,
  untilMs: AT + 24 * HOUR_MS,
};
export const selfTest = {
  at: AT,
  ok: true,
  latencyMs: 640,
  transaction: hashOf('self-test'),
  notCharged: true,
  reason: null,
};
export const catalogueCopy = { readAt: AT, entries: '["é €"]' };
