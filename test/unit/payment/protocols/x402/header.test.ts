import { describe, expect, test } from 'vitest';
import { decodePayment, encodeHeader } from '../../../../../src/payment/protocols/x402/http.ts';
import { PaymentRefused } from '../../../../../src/payment/refusal.ts';
import { decodeEip3009 } from '../../../../../src/payment/usdc/authorization.ts';
import { seededRandom } from '../../../../support/random.ts';
import { headerOf, newKey, payloadOf, plainRequirement, signAuthorization } from '../../../../support/usdc/payments.ts';

const requirement = plainRequirement('0x00000000000000000000000000000000000000aa');
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

describe('an authorization', () => {
  const given = good.payload as { signature: string; authorization: Record<string, string> };
  const withMember = (name: string, value: unknown) =>
    reason(headerOf({ ...good, payload: { ...given, authorization: { ...given.authorization, [name]: value } } }));
  const withSignature = (signature: unknown) => reason(headerOf({ ...good, payload: { ...given, signature } }));

  test('is read byte for byte', () => {
    const { from, to, nonce, value, validAfter, validBefore } = given.authorization;
    const read = decodeEip3009(decodePayment(headerOf(good)).payload);
    const hex = (bytes: Uint8Array) => `0x${Buffer.from(bytes).toString('hex')}`;
    expect([hex(read.from), hex(read.to), hex(read.nonce)]).toEqual(
      [from, to, nonce].map((text) => text?.toLowerCase()),
    );
    expect([read.value, read.validAfter, read.validBefore].map(String)).toEqual([value, validAfter, validBefore]);
    expect(hex(read.signature)).toBe(given.signature);
  });

  test.each(['value', 'validAfter', 'validBefore'])('has a %s of 256 bits, in decimal digits alone', (name) => {
    const most = 2n ** 256n - 1n;
    expect(withMember(name, '0')).toBe('decoded');
    expect(withMember(name, String(most))).toBe('decoded');
    expect(withMember(name, '1'.padStart(78, '0'))).toBe('decoded');
    for (const bad of [String(most + 1n), '1'.padStart(79, '0'), '', '-1', '0x1', ' 1', '1 ', '1.0', 1, null])
      expect(withMember(name, bad), `${bad}`).toBe('invalid_payload');
  });

  test.each([
    ['from', 20],
    ['to', 20],
    ['nonce', 32],
  ])('has a %s of exactly %i bytes in hex', (name, length) => {
    expect(withMember(name, `0x${'aB'.repeat(length)}`)).toBe('decoded');
    const bad = [
      'ab'.repeat(length),
      `0x${'ab'.repeat(length - 1)}`,
      `0x${'ab'.repeat(length)}a`,
      `0x${'ag'.repeat(length)}`,
    ];
    for (const text of [...bad, `x0x${'ab'.repeat(length)}`, undefined])
      expect(withMember(name, text), text).toBe('invalid_payload');
  });

  test('has a signature of one to 4,096 bytes in hex', () => {
    for (const length of [1, 65, 4096]) expect(withSignature(`0x${'aB'.repeat(length)}`)).toBe('decoded');
    const bad = [
      '0x',
      `0x${'ab'.repeat(4097)}`,
      '0xabc',
      `0x${'ag'.repeat(65)}`,
      `x0x${'ab'.repeat(65)}`,
      'ab',
      undefined,
    ];
    for (const text of bad) expect(withSignature(text)).toBe('invalid_payload');
  });
});

describe('a header is taken', () => {
  const padded = (length: number) => {
    const text = JSON.stringify(good);
    return Buffer.from(text.padEnd((length / 4) * 3)).toString('base64');
  };

  test('up to 12,288 characters, so that a whole header block stays within what Node reads', () => {
    expect([padded(12_288).length, reason(padded(12_288))]).toEqual([12_288, 'decoded']);
    expect([padded(12_292).length, reason(padded(12_292))]).toEqual([12_292, 'invalid_payload']);
  });

  test('with whatever extensions an object can hold, or none', () => {
    for (const extensions of [{ a: { b: 1 } }, null, undefined])
      expect(decodePayment(headerOf({ ...good, extensions })).identifier()).toBeNull();
    expect(reason(headerOf({ ...good, extensions: 'text' }))).toBe('invalid_payload');
  });

  test('only as base64 in one piece, in whole groups of four, padded at its end', () => {
    const whole = padded(4000);
    expect(reason(whole)).toBe('decoded');
    for (const bad of [
      ` ${whole}`,
      `${whole} `,
      `\n${whole}`,
      whole.slice(0, -1),
      `${whole}====`,
      `=${whole.slice(1)}`,
    ])
      expect(reason(bad)).toBe('invalid_payload');
    // One byte more than whole groups is padded with two signs, two bytes with one.
    for (const more of [1, 2])
      expect(reason(Buffer.from(JSON.stringify(good).padEnd(3000 + more)).toString('base64'))).toBe('decoded');
  });

  test('that says what was accepted', () => {
    expect(decodePayment(headerOf(good)).accepted).toEqual(requirement);
    expect(reason(headerOf({ ...good, accepted: 'all of it' }))).toBe('invalid_payload');
  });
});

test('a header that we send is base64 of its JSON', () => {
  const value = { text: 'é', list: [1, null] };
  expect(JSON.parse(Buffer.from(encodeHeader(value), 'base64').toString('utf8'))).toEqual(value);
});
