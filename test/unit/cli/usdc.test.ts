import { DEFAULT_ASSETS } from '@x402/evm';
import { expect, test } from 'vitest';
import { formatUsdc, parseUsdc, usdcToken } from '../../../cli/money.ts';
import { printable } from '../../../cli/printable.ts';
import { waitSeconds } from '../../../cli/seller.ts';

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

test('USDC is what the stock client takes for it, and Arc’s, and nothing else', () => {
  const known = Object.entries(DEFAULT_ASSETS).flatMap(([network, assets]) =>
    assets.flatMap((one) => (one.symbol === 'USDC' && one.decimals === 6 ? [{ ...one, network }] : [])),
  );
  expect(known.length).toBeGreaterThan(5);
  for (const { network, asset, name, version } of known) {
    expect(usdcToken(network, asset)).toEqual({ name, version });
    expect(usdcToken(network, asset.toLowerCase())).toEqual({ name, version });
    expect(usdcToken('eip155:99', asset)).toBeNull();
  }
  expect(usdcToken('eip155:5042', `0x36${'0'.repeat(38)}`)).toEqual({ name: 'USDC', version: '2' });
  expect(usdcToken('eip155:5042', `0x36${'0'.repeat(37)}1`)).toBeNull();
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
