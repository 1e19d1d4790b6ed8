import { expect, test } from 'vitest';
import { presentsPayment } from '../../../src/payment/http-auth.ts';

/** A request as Node reads it, with these header fields. */
const request = (...fields: [name: string, value: string][]) => ({
  headers: Object.fromEntries(fields.map(([name, value]) => [name.toLowerCase(), value])),
  rawHeaders: fields.flat(),
});

test.each([
  ['PAYMENT-SIGNATURE', 'e30='],
  ['X-PAYMENT', 'e30='],
  ['X-PAYMENT-SIGNATURE', 'e30='],
  ['Authorization', 'Payment e30'],
  ['Authorization', `L402 AAAA:${'0'.repeat(64)}`],
  ['authorization', `LSAT AAAA:${'0'.repeat(64)}`],
])('a request with %s: %s presents a payment', (name, value) => {
  expect(presentsPayment(request(['Host', 'a.example'], [name, value]))).toBe(true);
});

test('a second line of Authorization counts as the first does', () => {
  const lines: [string, string][] = [
    ['Authorization', 'Basic YTpi'],
    ['Authorization', 'Payment e30'],
  ];
  expect(presentsPayment({ ...request(...lines), headers: { authorization: 'Basic YTpi' } })).toBe(true);
});

test.each<[string, [string, string][]]>([
  ['no header field', []],
  ['a token of a proxy', [['Authorization', 'Basic YTpi']]],
  ['a wish for a payment', [['Accept-Payment', 'tempo']]],
])('a request with %s presents none', (_, fields) => {
  expect(presentsPayment(request(...fields))).toBe(false);
});
