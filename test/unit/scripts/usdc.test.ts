import { expect, test } from 'vitest';
import { waitSeconds } from '../../../cli/pay/present-payment.ts';
import { printable } from '../../../cli/pay/printable.ts';
import { refusalOf } from '../../../cli/pay/spending.ts';
import { formatUsdc, parseUsdc } from '../../../cli/pay/usdc.ts';

test.each([
  ['0.01', 10_000n],
  ['0.000001', 1n],
  ['1', 1_000_000n],
  ['0', 0n],
  ['123456789012.999999', 123_456_789_012_999_999n],
])('%s USDC is exactly %s base units', (text, units) => {
  expect(parseUsdc(text)).toBe(units);
});

test.each(['', '0.0000001', '-1', '1e-3', '.5', '1.', '0x1', ' 1', '1,5', 'NaN', '1.5 USDC'])(
  '"%s" is no amount, rather than a rounded one',
  (text) => expect(parseUsdc(text)).toBeNull(),
);

test('amounts are written exactly', () => {
  expect([1000n, 10_000_000n, 1n].map(formatUsdc)).toEqual(['0.001 USDC', '10 USDC', '0.000001 USDC']);
});

test('a payment is refused one unit above the ceiling or the listing, and only then', () => {
  const spending = { asked: 1000n, ceiling: 1000n, listed: 1000n };
  expect(refusalOf(spending)).toBeNull();
  expect(refusalOf({ ...spending, listed: null })).toBeNull();
  expect(refusalOf({ ...spending, asked: 999n })).toBeNull();
  expect(refusalOf({ ...spending, ceiling: 999n })).toMatch(/above the ceiling of 0.000999 USDC/);
  expect(refusalOf({ ...spending, listed: 999n })).toMatch(/above the seller's own listed price/);
  expect(refusalOf({ ...spending, listed: 0n })).toMatch(/listed price/);
});

test('a third party’s text cannot control the terminal', () => {
  expect(printable('a\u001b[2Jb\r\nc\u202ed\u2028e')).toBe('a [2Jb  c d e');
  expect(printable('x'.repeat(2000)).length).toBe(501);
});

test('a seller can make the buyer wait, but not for long', () => {
  expect([null, '3', '0', '86400', 'Wed, 21 Oct 2026 07:28:00 GMT', '-5'].map(waitSeconds)).toEqual([
    1, 3, 1, 10, 1, 1,
  ]);
});
