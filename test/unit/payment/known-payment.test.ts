import { describe, expect, test } from 'vitest';
import type { Order } from '../../../src/payment/call.ts';
import {
  isSameAuthorization,
  isSameBuyer,
  isSameRequest,
  mayHaveMoved,
  mayReuse,
} from '../../../src/payment/known-payment.ts';
import { paymentKey, REVERTED } from '../../../src/payment/settler.ts';
import { hashAuthorization } from '../../../src/payment/usdc/authorization.ts';
import type { Payment } from '../../../src/store/ports/payments.ts';
import { hash32 } from '../../support/ledger/ledger-rows.ts';
import { randomAuthorization } from '../../support/usdc/token-node.ts';

const NETWORK = 'eip155:5042';
const CONTRACT = Buffer.alloc(20, 0x36);
const authorization = randomAuthorization();

/** What of an order its comparison with a row reads. */
type Compared = Pick<
  Order<object>,
  'authorization' | 'authorizationHash' | 'key' | 'requestHash' | 'clientHash' | 'identifierHash' | 'protocol'
>;

function order(more: Partial<Compared> = {}): Order<object> {
  const compared: Compared = {
    authorization,
    authorizationHash: hashAuthorization(authorization, CONTRACT),
    key: paymentKey(authorization, NETWORK, CONTRACT),
    requestHash: hash32('request'),
    clientHash: hash32('client'),
    identifierHash: hash32('identifier'),
    protocol: 'x402',
    ...more,
  };
  return compared as Order<object>;
}

/** The row of that very order, after it has reverted. */
function row(more: Partial<Payment> = {}): Payment {
  const { value: amount, to: payTo, validAfter, validBefore } = authorization;
  return {
    ...paymentKey(authorization, NETWORK, CONTRACT),
    id: 'a',
    state: 'failed',
    reason: REVERTED,
    bootId: 'boot',
    amount,
    payTo,
    validAfter,
    validBefore,
    authorizationHash: hashAuthorization(authorization, CONTRACT),
    requestHash: hash32('request'),
    clientHash: hash32('client'),
    identifierHash: hash32('identifier'),
    signature: null,
    price: amount,
    charged: null,
    payerHasCode: false,
    checkedBlock: 1,
    transaction: null,
    block: null,
    reservedAt: 1,
    endedAt: 2,
    deliveries: 0,
    deliveredAt: null,
    channel: null,
    calldata: null,
    protocol: 'x402',
    ...more,
  };
}

describe('the same authorization', () => {
  test('is all of its content, for any request and any presenter', () => {
    expect(isSameAuthorization(row(), order())).toBe(true);
    const elsewhere = order({ requestHash: hash32('x'), clientHash: hash32('y'), identifierHash: null });
    expect(isSameAuthorization(row(), elsewhere)).toBe(true);
  });

  test('is not one whose hash is another, as that of another signature is', () => {
    expect(isSameAuthorization(row(), order({ authorizationHash: hash32('another') }))).toBe(false);
  });

  const key = paymentKey(authorization, NETWORK, CONTRACT);
  test.each<[string, Partial<Compared['key']>]>([
    ['network', { network: 'eip155:1' }],
    ['contract', { contract: Buffer.alloc(20, 1) }],
    ['payer', { payer: Buffer.alloc(20, 2) }],
    ['nonce', { nonce: Buffer.alloc(32, 3) }],
  ])('is not one of another %s', (_, change) => {
    expect(isSameAuthorization(row(), order({ key: { ...key, ...change } }))).toBe(false);
  });

  describe('in a row from before hashes were kept', () => {
    const old = row({ authorizationHash: null });

    test('is recognised by its terms, whatever the signature', () => {
      expect(isSameAuthorization(old, order({ authorizationHash: hash32('another') }))).toBe(true);
    });

    test.each<[string, Partial<typeof authorization>]>([
      ['amount', { value: authorization.value + 1n }],
      ['recipient', { to: Buffer.alloc(20, 4) }],
      ['beginning', { validAfter: authorization.validAfter + 1n }],
      ['end', { validBefore: authorization.validBefore - 1n }],
    ])('is not one of another %s', (_, change) => {
      expect(isSameAuthorization(old, order({ authorization: { ...authorization, ...change } }))).toBe(false);
    });

    test('is not one of another key', () => {
      expect(isSameAuthorization(old, order({ key: { ...key, nonce: Buffer.alloc(32, 3) } }))).toBe(false);
    });
  });
});

test('the same request is recognised by its hash', () => {
  expect(isSameRequest(row(), order())).toBe(true);
  expect(isSameRequest(row(), order({ requestHash: hash32('another') }))).toBe(false);
});

describe('the same buyer', () => {
  test('is the first presenter’s address, whatever the identifier', () => {
    expect(isSameBuyer(row(), order({ identifierHash: null }))).toBe(true);
    expect(isSameBuyer(row({ identifierHash: null }), order())).toBe(true);
  });

  test('is not shown by its address in another protocol, and by its identifier in any', () => {
    expect(isSameBuyer(row({ protocol: 'mpp' }), order({ identifierHash: null }))).toBe(false);
    expect(isSameBuyer(row({ protocol: 'mpp' }), order())).toBe(true);
    expect(isSameBuyer(row({ protocol: null }), order({ identifierHash: null }))).toBe(true);
  });

  test('at another address is recognised by the payment identifier, which both presentations must have', () => {
    const moved = { clientHash: hash32('another client') };
    expect(isSameBuyer(row(), order(moved))).toBe(true);
    expect(isSameBuyer(row(), order({ ...moved, identifierHash: hash32('another') }))).toBe(false);
    expect(isSameBuyer(row(), order({ ...moved, identifierHash: null }))).toBe(false);
    expect(isSameBuyer(row({ identifierHash: null }), order(moved))).toBe(false);
    expect(isSameBuyer(row({ identifierHash: null }), order({ ...moved, identifierHash: null }))).toBe(false);
  });
});

describe('a row that failed', () => {
  test('may be reused by its first presenter, with the very same authorization, for the same request', () => {
    expect(mayReuse(row(), order())).toBe(true);
    expect(mayReuse(row(), order({ requestHash: hash32('another') }))).toBe(false);
  });

  test('may be reused by its identifier alone where it has one, and by its client’s address where it has none', () => {
    expect(mayReuse(row(), order({ clientHash: hash32('another') }))).toBe(true);
    expect(mayReuse(row(), order({ identifierHash: null }))).toBe(false);
    expect(mayReuse(row(), order({ identifierHash: hash32('another') }))).toBe(false);
    const plain = row({ identifierHash: null });
    expect(mayReuse(plain, order())).toBe(true);
    expect(mayReuse(plain, order({ clientHash: hash32('another') }))).toBe(false);
  });

  test.each<[string, Partial<Payment>]>([
    ['it failed for another reason', { reason: 'invalid_exact_evm_nonce_already_used' }],
    ['it has settled', { state: 'settled' }],
    ['its outcome is unknown', { state: 'unknown' }],
    ['it is from before authorizations were hashed', { authorizationHash: null }],
  ])('may not be reused where %s', (_, change) => {
    expect(mayReuse(row(change), order())).toBe(false);
  });

  test('may not be reused with another authorization, or by another client', () => {
    expect(mayReuse(row(), order({ authorizationHash: hash32('another') }))).toBe(false);
    expect(mayReuse(row(), order({ clientHash: hash32('another'), identifierHash: null }))).toBe(false);
  });
});

describe('the money of an authorization', () => {
  test.each(['reserved', 'settling', 'unknown', 'settled'] as const)('may have moved while its row is %s', (state) => {
    expect(mayHaveMoved(row({ state, reason: null }))).toBe(true);
  });

  test('may have moved after its settlement moved nothing, because any third party can send an authorization that is public', () => {
    expect(mayHaveMoved(row({ state: 'failed', reason: REVERTED }))).toBe(true);
  });

  test('has not moved where there is no row, or the row failed for good', () => {
    expect(mayHaveMoved(null)).toBe(false);
    expect(mayHaveMoved(row({ state: 'failed', reason: 'invalid_exact_evm_nonce_already_used' }))).toBe(false);
  });
});
