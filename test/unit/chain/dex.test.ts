import { describe, expect, test } from 'vitest';
import {
  decodeSwap,
  type EventLog,
  type PoolKind,
  SWAP_TOPIC,
  SWAP_TOPICS,
  toE9,
  toTrade,
} from '../../../src/chain/dex.ts';
import { bytesToHex } from '../../../src/lib/hex.ts';
import { keccak256 } from '../../../src/lib/secp256k1.ts';

const PEER = `0x${'0'.repeat(24)}${'ab'.repeat(20)}` as const;
const POOL = `0x${'cd'.repeat(20)}` as const;

/** 32-byte words as the ABI writes them, negative numbers in two's complement. */
const words = (...values: bigint[]) =>
  `0x${values.map((value) => BigInt.asUintN(256, value).toString(16).padStart(64, '0')).join('')}` as const;
const swap = (kind: PoolKind, ...values: bigint[]): EventLog => ({
  address: POOL,
  topics: [SWAP_TOPIC[kind], PEER, PEER],
  data: words(...values),
});

/** Price, liquidity and tick (v4: and fee). The code does not read them. */
const AFTER_V3 = [79228162514264337593543950336n, 10n ** 18n, -12n];
const AFTER_V4 = [...AFTER_V3, 500n];

test('topics are the hashes of the signatures that they stand for', () => {
  for (const [signature, topic] of Object.entries(SWAP_TOPICS)) {
    expect(bytesToHex(keccak256(Buffer.from(signature)))).toBe(topic);
  }
});

describe('1,165 of token0 in and 1,000 of token1 out, as each kind of pool writes it', () => {
  const paidIn = 1_165_000_000n;
  const paidOut = 1_000_000_000n;
  const inAndOut = { amount0: paidIn, amount1: -paidOut };
  const outAndIn = { amount0: -paidIn, amount1: paidOut };

  test('v2 counts in and out apart', () => {
    expect(decodeSwap('v2', swap('v2', paidIn, 0n, 0n, paidOut))).toEqual(inAndOut);
    expect(decodeSwap('v2', swap('v2', 0n, paidOut, paidIn, 0n))).toEqual(outAndIn);
  });

  test('v2 gives the difference when a part of the input was paid back', () => {
    expect(decodeSwap('v2', swap('v2', paidIn + 5n, 0n, 5n, paidOut))).toEqual(inAndOut);
  });

  test.each(['v3', 'slipstream'] as const)('%s reports the pool’s side: the input is positive', (kind) => {
    expect(decodeSwap(kind, swap(kind, paidIn, -paidOut, ...AFTER_V3))).toEqual(inAndOut);
    expect(decodeSwap(kind, swap(kind, -paidIn, paidOut, ...AFTER_V3))).toEqual(outAndIn);
  });

  test('v4 reports the swapper’s side: the input is negative', () => {
    expect(decodeSwap('v4', swap('v4', -paidIn, paidOut, ...AFTER_V4))).toEqual(inAndOut);
    expect(decodeSwap('v4', swap('v4', paidIn, -paidOut, ...AFTER_V4))).toEqual(outAndIn);
  });

  test('the same numbers mean the opposite in v3 and v4', () => {
    const v3 = decodeSwap('v3', swap('v3', paidIn, -paidOut, ...AFTER_V3));
    const v4 = decodeSwap('v4', swap('v4', paidIn, -paidOut, ...AFTER_V4));
    expect(v4).toEqual({ amount0: -(v3?.amount0 ?? 0n), amount1: -(v3?.amount1 ?? 0n) });
  });
});

test('an event of another kind, or of another length, is no swap of this one', () => {
  const v3 = swap('v3', 5n, -5n, ...AFTER_V3);
  expect(decodeSwap('v3', v3)).not.toBeNull();
  expect(decodeSwap('slipstream', v3)).not.toBeNull();
  expect(decodeSwap('v4', v3)).toBeNull();
  expect(decodeSwap('v2', v3)).toBeNull();
  expect(decodeSwap('v3', { ...v3, data: `${v3.data}00` })).toBeNull();
  expect(decodeSwap('v3', { ...v3, data: words(5n, -5n) })).toBeNull();
  expect(decodeSwap('v3', { ...v3, data: '0x' })).toBeNull();
  expect(decodeSwap('v3', { ...v3, topics: [] })).toBeNull();
});

describe('a trade', () => {
  const usdcFirst = { tokenFirst: false, tokenDecimals: 6, usdcDecimals: 6 };
  const eurcFirst = { ...usdcFirst, tokenFirst: true };
  const E9 = 1_000_000_000n;

  test('takes base and USDC by the order of the pool’s tokens, in either direction', () => {
    const trade = { baseE9: 1000n * E9, usdcE9: 1165n * E9 };
    const deltas = { amount0: 1_165_000_000n, amount1: -1_000_000_000n };
    expect(toTrade(deltas, usdcFirst)).toEqual(trade);
    expect(toTrade({ amount0: -deltas.amount0, amount1: -deltas.amount1 }, usdcFirst)).toEqual(trade);
    expect(toTrade({ amount0: deltas.amount1, amount1: deltas.amount0 }, eurcFirst)).toEqual(trade);
    expect(toTrade(deltas, eurcFirst), 'the order matters').toEqual({ baseE9: 1165n * E9, usdcE9: 1000n * E9 });
  });

  test('scales each side by its own decimals: native USDC has 18, bitcoin 8', () => {
    const native = { tokenFirst: false, tokenDecimals: 8, usdcDecimals: 18 };
    expect(toTrade({ amount0: 95_000n * 10n ** 18n, amount1: -(10n ** 8n) }, native)).toEqual({
      baseE9: E9,
      usdcE9: 95_000n * E9,
    });
  });

  test('is null when both sides moved the same way, or when one did not move', () => {
    expect(toTrade({ amount0: 7n, amount1: 7n }, usdcFirst), 'a loan and its fee').toBeNull();
    expect(toTrade({ amount0: -7n, amount1: -7n }, usdcFirst)).toBeNull();
    expect(toTrade({ amount0: 7n, amount1: 0n }, usdcFirst)).toBeNull();
    expect(toTrade({ amount0: 0n, amount1: -7n }, usdcFirst)).toBeNull();
    expect(toTrade({ amount0: 7n, amount1: -7n }, usdcFirst)).not.toBeNull();
  });

  test('is null when the database could not hold an amount', () => {
    const wide = { tokenFirst: true, tokenDecimals: 18, usdcDecimals: 6 };
    const most = (2n ** 63n - 1n) * 10n ** 9n;
    expect(toTrade({ amount0: most, amount1: -1n }, wide)?.baseE9).toBe(2n ** 63n - 1n);
    expect(toTrade({ amount0: most + 10n ** 9n, amount1: -1n }, wide)).toBeNull();
    expect(toTrade({ amount0: 5n * 10n ** 8n, amount1: -1n }, wide)?.baseE9).toBe(1n);
    expect(toTrade({ amount0: 5n * 10n ** 8n - 1n, amount1: -1n }, wide)).toBeNull();
  });
});

test('base units become 10^-9 exactly up to nine decimals, and rounded half up beyond', () => {
  expect(toE9(1n, 0)).toBe(1_000_000_000n);
  expect(toE9(1_234_567n, 6)).toBe(1_234_567_000n);
  expect(toE9(7n, 9)).toBe(7n);
  expect(toE9(1_499_999_999n, 18)).toBe(1n);
  expect(toE9(1_500_000_000n, 18)).toBe(2n);
  expect(toE9(10n ** 33n + 499_999_999n, 18)).toBe(10n ** 24n);
});
