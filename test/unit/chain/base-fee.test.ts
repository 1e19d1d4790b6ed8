import { expect, test } from 'vitest';
import type { Header } from '../../../src/chain/block.ts';
import { baseFeeOf, nextBaseFee } from '../../../src/chain/fees.ts';
import { UpstreamFailed } from '../../../src/errors.ts';

const header = (over: Partial<Header>): Header => ({
  number: 7,
  hash: `0x${'0'.repeat(64)}`,
  at: 0,
  gasUsed: 15_000_000n,
  gasLimit: 30_000_000n,
  extraData: '0x',
  baseFeeWei: 20_000_000_000n,
  transactionCount: 0,
  ...over,
});

test('eight bytes of extra data are the exact next base fee', () => {
  // 20.13 gwei, big-endian.
  expect(nextBaseFee(header({ extraData: '0x00000004afd76c80' }))).toEqual({ wei: 20_130_000_000n, exact: true });
});

test.each(['0x', '0x00000004afd76c', '0x00000004afd76c8000', '0x0000000000000000'])(
  'extra data %s is not a fee: the fee is computed, and marked as not exact',
  (extraData) => {
    expect(nextBaseFee(header({ extraData }))).toEqual({ wei: 20_000_000_000n, exact: false });
  },
);

// Figures by the formula of https://eips.ethereum.org/EIPS/eip-1559 worked by hand.
test.each([
  [15_000_000n, 20_000_000_000n],
  [30_000_000n, 22_500_000_000n],
  [0n, 17_500_000_000n],
  [7_500_000n, 18_750_000_000n],
  [15_000_001n, 20_000_000_166n],
])('EIP-1559 with %i gas used gives %i', (gasUsed, wei) => {
  expect(nextBaseFee(header({ gasUsed })).wei).toBe(wei);
});

test('a fee of 7 wei still rises when blocks are over target', () => {
  expect(nextBaseFee(header({ baseFeeWei: 7n, gasUsed: 15_000_001n })).wei).toBe(8n);
});

test('a header without a base fee is an upstream failure', () => {
  expect(() => baseFeeOf(header({ baseFeeWei: null }))).toThrow(UpstreamFailed);
  expect(() => nextBaseFee(header({ baseFeeWei: null }))).toThrow(UpstreamFailed);
});
