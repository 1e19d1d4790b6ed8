import { describe, expect, test } from 'vitest';
import { decodeEip3009 } from '../../../../../src/payment/evm/eip3009-payload.ts';
import { decodePayment } from '../../../../../src/payment/protocols/x402/header.ts';
import { PaymentRefused } from '../../../../../src/payment/refusal.ts';
import { seededRandom } from '../../../../support/random.ts';
import {
  headerOf,
  newKey,
  payloadOf,
  type Requirement,
  signAuthorization,
  USDC,
} from '../../../../support/usdc/payments.ts';

const requirement: Requirement = {
  scheme: 'exact',
  network: 'eip155:5042',
  amount: '1000',
  asset: USDC,
  payTo: '0x00000000000000000000000000000000000000aa',
  maxTimeoutSeconds: 604_900,
  extra: {},
};
const good = payloadOf(signAuthorization(newKey().privateKey, requirement), requirement);

/** Decodes all the way; anything but a refusal escapes and fails the test. */
function reason(header: string): string {
  try {
    decodeEip3009(decodePayment(header).payload);
    return 'decoded';
  } catch (error) {
    if (error instanceof PaymentRefused) return error.reason;
    throw error;
  }
}

describe('a payment header', () => {
  test('decodes what a client sends', () => {
    expect(reason(headerOf(good))).toBe('decoded');
  });
  test.each([
    ['nothing', '', 'invalid_payload'],
    ['no base64', '%%%', 'invalid_payload'],
    ['base64url', headerOf(good).replace(/.$/, '_'), 'invalid_payload'],
    ['two headers joined', `${headerOf(good)}, ${headerOf(good)}`, 'invalid_payload'],
    ['no JSON', Buffer.from('hello!').toString('base64'), 'invalid_payload'],
    ['too long', 'A'.repeat(16_384), 'invalid_payload'],
    ['an array', headerOf([]), 'invalid_x402_version'],
    ['null', headerOf(null), 'invalid_x402_version'],
    ['version 1', headerOf({ ...good, x402Version: 1 }), 'invalid_x402_version'],
    ['payload null', headerOf({ ...good, payload: null }), 'invalid_payload'],
    ['permit2', headerOf({ ...good, payload: { permit2: {} } }), 'unsupported_payload_type'],
    [
      'a number as text only',
      headerOf({ ...good, payload: { signature: '0x00', authorization: { value: 1 } } }),
      'invalid_payload',
    ],
  ])('that is %s is refused by name', (_, header, expected) => {
    expect(reason(header)).toBe(expected);
  });

  test('mutated 5,000 times is decoded or refused, and never anything else', () => {
    const random = seededRandom('header');
    const text = JSON.stringify(good);
    for (let i = 0; i < 5000; i++) {
      const at = Math.floor(random() * text.length);
      const cut = Math.floor(random() * 4);
      const char = String.fromCharCode(Math.floor(random() * 0x180));
      reason(Buffer.from(text.slice(0, at) + char + text.slice(at + cut)).toString('base64'));
    }
  });
});
