import { describe, expect, test } from 'vitest';
import { createGasModel } from '../../../../../src/payment/relayer/gas.ts';
import { batchCalldata } from '../../../../../src/payment/relayer/transactions.ts';
import { settleCall } from '../../../../../src/payment/usdc/checks.ts';
import { SETTLE_GAS } from '../../../../../src/payment/usdc/token.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { randomAuthorization } from '../../../../support/usdc/token-node.ts';

const BLOCK = 30_000_000n;
const transfers = (count: number) => ({ transfers: count, calls: 0 });
/** Batches of which each payment took so much. */
function learned(each: bigint, batches = 60) {
  const model = createGasModel(60);
  for (let batch = 0; batch < batches; batch++) model.learn(21_000n + each * 100n, transfers(100));
  return model;
}

describe('the gas of a transaction', () => {
  test('is a fixed cap for one payment, and the sum of budgets for many', () => {
    const model = createGasModel(60);
    expect(model.limit(transfers(1))).toBe(SETTLE_GAS);
    expect(model.limit(transfers(3)) - model.limit(transfers(2))).toBe(150_000n);
  });

  test('stays within its share of the block, however many payments wait', () => {
    for (const share of [1, 20, 60, 100]) {
      const model = createGasModel(share);
      const most = model.most(BLOCK, 10_000);
      expect(most).toBeGreaterThanOrEqual(1);
      if (most > 1) expect(model.limit(transfers(most))).toBeLessThanOrEqual((BLOCK * BigInt(share)) / 100n);
    }
  });

  test('stays at what every node accepts, however large the blocks and cheap the payments', () => {
    for (const each of [1n, 60_000n, 100_000n, 250_000n]) {
      const model = learned(each);
      const most = model.most(200_000_000n, 10_000);
      expect(model.limit(transfers(most))).toBeLessThanOrEqual(16_777_216n);
      const calls = Array.from({ length: most }, randomAuthorization);
      expect(
        batchCalldata(calls.map((authorization) => settleCall(USDC, { authorization, call: null }))).length / 2,
      ).toBeLessThan(128 * 1024 - 512);
    }
  });

  test('fills a share when all waiting payments fit into it, and otherwise lets two transactions fill a block', () => {
    const model = learned(80_000n);
    const one = model.most(BLOCK, 1);
    expect(model.most(BLOCK, one)).toBe(one);
    const pair = model.most(BLOCK, one + 1);
    expect(pair).toBeLessThan(one);
    const used = 21_000n + 80_000n * BigInt(pair);
    expect(used + model.limit(transfers(pair))).toBeLessThanOrEqual(BLOCK);
    expect(21_000n + 80_000n * BigInt(one) + model.limit(transfers(one))).toBeGreaterThan(BLOCK);
  });
});

describe('a payment’s budget', () => {
  const each = (model: ReturnType<typeof createGasModel>) => model.limit(transfers(3)) - model.limit(transfers(2));

  test('falls to a quarter more than payments take, and is never less than they took', () => {
    expect(each(learned(80_000n))).toBeGreaterThanOrEqual(100_000n);
    expect(each(learned(80_000n))).toBeLessThan(101_000n);
  });

  test('rises at once', () => {
    const model = learned(80_000n);
    model.learn(21_000n + 120_000n * 100n, transfers(100));
    expect(each(model)).toBe(150_000n);
  });

  test('is never more than a lone payment’s, nor less than any could do with', () => {
    expect(each(learned(10_000_000n))).toBe(SETTLE_GAS);
    expect(each(learned(1n))).toBe(50_000n);
  });
});

describe('failed batches', () => {
  test('make the next ones smaller, to a minimum, so that less gas can be wasted, and good ones make them larger again', () => {
    const model = learned(80_000n);
    const before = model.most(BLOCK, 100);
    model.failedBatch(100);
    expect(model.most(BLOCK, 100)).toBe(50);
    for (let batch = 0; batch < 10; batch++) model.failedBatch(8);
    expect(model.most(BLOCK, 100)).toBe(8);
    for (let batch = 0; batch < 60; batch++) model.learn(21_000n + 80_000n * 8n, transfers(8));
    expect(model.most(BLOCK, 100)).toBe(before);
  });

  test('raise the budgets, because these may have been too small', () => {
    const model = learned(80_000n);
    const before = model.limit(transfers(10));
    model.failedBatch(10);
    expect(model.limit(transfers(10))).toBeGreaterThan(before);
  });
});

describe('before the first batch', () => {
  test('a payment is given 150,000 gas and expected to use 120,000, beside 60,000 for the batch', () => {
    const model = createGasModel(60);
    expect([model.limit(transfers(1)), model.limit(transfers(2)), model.limit(transfers(10))]).toEqual([
      300_000n,
      360_000n,
      1_560_000n,
    ]);
    expect(model.expected()).toBe(120_000n);
  });

  test('no transaction is given more than 2^24 gas', () => {
    const { ceiling } = createGasModel(60);
    expect([ceiling(16_777_215n), ceiling(16_777_216n), ceiling(16_777_217n)]).toEqual([
      16_777_215n,
      16_777_216n,
      16_777_216n,
    ]);
  });

  test('a transaction settles what fits into its share, into half a block, into its ceiling, and 250 at the most', () => {
    const most = (share: number, block: bigint, waiting: number) => createGasModel(share).most(block, waiting);
    // A fifth of 30M, less the batch's own: 39 of 150,000, and no fewer in a pair.
    expect([most(20, BLOCK, 1), most(20, BLOCK, 39), most(20, BLOCK, 40)]).toEqual([39, 39, 39]);
    // All of 18M, which is above the ceiling: 111 alone, and 110 where two make a block.
    expect([most(60, BLOCK, 111), most(60, BLOCK, 112)]).toEqual([111, 110]);
    expect([most(60, 6_000_000n, 23), most(60, 6_000_000n, 24)]).toEqual([23, 21]);
    // A block too small for any batch still settles one by one.
    expect(most(60, 100_000n, 10)).toBe(1);
    const cheap = learned(40_000n);
    expect(cheap.most(300_000_000n, 250)).toBe(250);
  });
});

test('a budget falls by an eighth of the difference with each cheaper batch, and stays after a batch that was as dear', () => {
  const model = createGasModel(60);
  model.learn(21_000n + 88_000n * 10n, transfers(10));
  // A quarter more than 88,000 is 110,000: an eighth of the way down from 150,000.
  expect(model.limit(transfers(3)) - model.limit(transfers(2))).toBe(145_000n);
  model.learn(21_000n + 116_000n * 10n, transfers(10));
  expect(model.limit(transfers(3)) - model.limit(transfers(2))).toBe(145_000n);
});

test('a failed batch halves the size of the next one at once, and good batches double it', () => {
  const model = learned(80_000n);
  model.failedBatch(41);
  expect(model.most(BLOCK, 100)).toBe(20);
  model.failedBatch(100);
  expect(model.most(BLOCK, 100)).toBe(10);
  model.learn(21_000n + 80_000n * 10n, transfers(10));
  expect(model.most(BLOCK, 100)).toBe(20);
});

test('a failed batch raises a budget by a quarter, up to a lone payment’s', () => {
  const model = createGasModel(60);
  model.failedBatch(10);
  expect(model.limit(transfers(3)) - model.limit(transfers(2))).toBe(187_500n);
  for (let batch = 0; batch < 5; batch++) model.failedBatch(10);
  expect(model.limit(transfers(3)) - model.limit(transfers(2))).toBe(SETTLE_GAS);
});

describe('payments with a call of their own', () => {
  test('get 400,000 gas alone and 200,000 in a batch, beside the budgets of plain transfers', () => {
    const model = createGasModel(60);
    expect(model.limit({ transfers: 0, calls: 1 })).toBe(400_000n);
    expect(model.limit({ transfers: 0, calls: 3 })).toBe(660_000n);
    expect(model.limit({ transfers: 2, calls: 3 }) - model.limit({ transfers: 0, calls: 3 })).toBe(300_000n);
    expect(model.expectedCall()).toBe(160_000n);
  });

  test('count as the transfers whose budgets they need, so that a full batch of them stays below the ceiling', () => {
    for (const each of [1n, 60_000n, 100_000n, 130_000n, 170_000n, 250_000n]) {
      const model = learned(each);
      const calls = Math.floor(model.most(BLOCK, 10_000) / model.callWeight());
      expect(model.limit({ transfers: 0, calls }), `${each}`).toBeLessThanOrEqual(2n ** 24n);
      expect(calls, `${each}`).toBeGreaterThan(30);
    }
  });

  test('teach nothing about the gas of a plain transfer', () => {
    const model = createGasModel(60);
    model.learn(2_000_000n, { transfers: 5, calls: 5 });
    expect(model.limit(transfers(10))).toBe(1_560_000n);
  });
});
