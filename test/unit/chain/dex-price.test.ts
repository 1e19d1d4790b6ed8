import { encodeAbiParameters, keccak256, toBytes } from 'viem';
import { expect, test } from 'vitest';
import {
  decodeSwap,
  type EventLog,
  type PoolKind,
  readPoolPrice,
  SWAP_TOPIC,
  SYNC_TOPIC,
} from '../../../src/chain/dex.ts';

type Hex = `0x${string}`;
const POOL: Hex = `0x${'ab'.repeat(20)}`;
const words = (...values: bigint[]): Hex =>
  `0x${values.map((value) => BigInt.asUintN(256, value).toString(16).padStart(64, '0')).join('')}`;
const log = (topic: Hex, data: Hex, address = POOL): EventLog => ({ address, topics: [topic], data });
const price = (kind: PoolKind, swap: EventLog, sync: EventLog | undefined, sides: object = {}) => {
  const pool = { tokenFirst: false, tokenDecimals: 6, usdcDecimals: 6, ...sides };
  return readPoolPrice(kind, swap, decodeSwap(kind, swap)!, sync, pool);
};

/** sqrt(ratio) x 2^96 of a ratio of two whole numbers, exact to the digit. */
function rootX96(numerator: bigint, denominator: bigint): bigint {
  const square = (numerator << 192n) / denominator;
  let [low, high] = [0n, 1n << 160n];
  while (high - low > 1n) {
    const middle = (low + high) / 2n;
    if (middle * middle <= square) low = middle;
    else high = middle;
  }
  return low;
}

test('the topic is the hash of Sync’s signature', () => {
  expect(SYNC_TOPIC).toBe(keccak256(toBytes('Sync(uint112,uint112)')));
});

test('v2: reserves before and after, from the Sync right before the swap', () => {
  // 1,000 USDC in, 800 tokens out; 201,000 USDC and 159,200 tokens remain.
  const swap = log(SWAP_TOPIC.v2, words(1_000_000_000n, 0n, 0n, 800_000_000n));
  const sync = log(SYNC_TOPIC, words(201_000_000_000n, 159_200_000_000n));
  const found = price('v2', swap, sync);
  expect(found?.priceBefore).toBeCloseTo(200_000 / 160_000, 12);
  expect(found?.priceAfter).toBeCloseTo(201_000 / 159_200, 12);
  expect(found?.usdcReserve).toBe(201_000);
});

test('v2: without its own Sync nothing is known', () => {
  const swap = log(SWAP_TOPIC.v2, words(1_000_000_000n, 0n, 0n, 800_000_000n));
  const another = log(SYNC_TOPIC, words(2n, 3n), `0x${'cd'.repeat(20)}`);
  for (const before of [undefined, another, log(SWAP_TOPIC.v2, words(1n, 2n)), log(SYNC_TOPIC, words(1n))]) {
    expect(price('v2', swap, before)).toBeNull();
  }
  // More went out than the reserves allow: the events do not belong together.
  expect(price('v2', swap, log(SYNC_TOPIC, words(5n, 7n)))).toBeNull();
});

test.each([
  // USDC first: the pool's ratio is tokens for USDC, 8 for 10, so 1.25 USDC a token.
  ['v3', false, 6, 6, 8n, 10n, 1.25],
  // The token first, 18 decimals against 6: 5 x 10^-14 of ratio is 0.05 USDC.
  ['slipstream', true, 18, 6, 5n, 10n ** 14n, 0.05],
  // Native USDC (18 decimals) first, a token of 6: the ratio 8 x 10^-13 is 1.25 USDC.
  ['v4', false, 6, 18, 8n, 10n ** 13n, 1.25],
] as const)(
  '%s: the price after the swap, in whole tokens',
  (kind, tokenFirst, tokenDecimals, usdcDecimals, a, b, usdc) => {
    const liquidity = 10n ** 15n;
    const tail = kind === 'v4' ? [0n, 500n] : [0n];
    const swap = log(SWAP_TOPIC[kind], words(1n, -1n, rootX96(a, b), liquidity, ...tail));
    const found = price(kind, swap, undefined, { tokenFirst, tokenDecimals, usdcDecimals });
    expect(found?.priceAfter).toBeCloseTo(usdc, 12);
    expect(found?.priceBefore).toBeNull();
    const root = Math.sqrt(Number(a) / Number(b));
    const reserve = (tokenFirst ? Number(liquidity) * root : Number(liquidity) / root) / 10 ** usdcDecimals;
    expect(found!.usdcReserve / reserve).toBeCloseTo(1, 12);
  },
);

test('a pool without liquidity or price says nothing', () => {
  expect(price('v3', log(SWAP_TOPIC.v3, words(1n, -1n, 0n, 5n, 0n)), undefined)).toBeNull();
  expect(price('v3', log(SWAP_TOPIC.v3, words(1n, -1n, 5n, 0n, 0n)), undefined)).toBeNull();
});

test('the words are those of the ABI', () => {
  const types = ['int256', 'int256', 'uint160', 'uint128', 'int24'].map((type) => ({ type }));
  expect(words(-5n, 6n, 7n, 8n, -9n)).toBe(encodeAbiParameters(types, [-5n, 6n, 7n, 8n, -9]));
});
