import { expect, test } from 'vitest';
import { formatCost, formatGwei, formatNative, formatUnits, formatUsdc } from '../../../src/lib/units.ts';

test.each([
  [0n, 6, '0'],
  [1n, 6, '0.000001'],
  [1_000_000n, 6, '1'],
  [1_500_000n, 6, '1.5'],
  [123_456_789n, 6, '123.456789'],
  [42n, 0, '42'],
  [-1_500_000n, 6, '-1.5'],
  [2n ** 256n - 1n, 18, '115792089237316195423570985008687907853269984665640564039457.584007913129639935'],
])('%i with %i decimals is %s', (value, decimals, text) => {
  expect(formatUnits(value, decimals)).toBe(text);
});

test('gwei and native amounts are exact where a float would round', () => {
  expect(formatGwei(20_000_000_001n)).toBe('20.000000001');
  expect(formatNative(9_007_199_254_740_993_000_000_001n)).toBe('9007199.254740993000000001');
});

test.each([
  [0n, '0', '0'],
  [1n, '0', '0.000001'],
  [499_999_999_999n, '0', '0.000001'],
  [500_000_000_000n, '0.000001', '0.000001'],
  [1_000_000_000_000n, '0.000001', '0.000001'],
  [1_000_000_000_001n, '0.000001', '0.000002'],
  [10n ** 18n, '1', '1'],
])('%i wei are %s USDC to the nearest sixth decimal, and cost %s', (wei, nearest, cost) => {
  expect([formatUsdc(wei, 18), formatCost(wei)]).toEqual([nearest, cost]);
});
