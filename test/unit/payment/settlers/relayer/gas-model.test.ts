import { describe, expect, test } from 'vitest';
import { SETTLE_GAS } from '../../../../../src/payment/evm/token.ts';
import { createGasModel } from '../../../../../src/payment/settlers/relayer/gas-model.ts';
import { batchCalldata } from '../../../../../src/payment/settlers/relayer/multicall.ts';
import { USDC } from '../../../../support/usdc/payments.ts';
import { randomAuthorization } from '../../../../support/usdc/token-node.ts';

const BLOCK = 30_000_000n;
/** Batches of which each payment took so much. */
function learned(each: bigint, batches = 60) {
  const model = createGasModel(60);
  for (let batch = 0; batch < batches; batch++) model.learn(21_000n + each * 100n, 100);
  return model;
}

describe('the gas of a transaction', () => {
  test('is a fixed cap for one payment, and the sum of budgets for many', () => {
    const model = createGasModel(60);
    expect(model.limit(1)).toBe(SETTLE_GAS);
    expect(model.limit(3) - model.limit(2)).toBe(150_000n);
  });

  test('stays within its share of the block, however much waits', () => {
    for (const share of [1, 20, 60, 100]) {
      const model = createGasModel(share);
      const most = model.most(BLOCK, 10_000);
      expect(most).toBeGreaterThanOrEqual(1);
      if (most > 1) expect(model.limit(most)).toBeLessThanOrEqual((BLOCK * BigInt(share)) / 100n);
    }
  });

  test('is what every node takes, however large the blocks and cheap the payments', () => {
    for (const each of [1n, 60_000n, 100_000n, 250_000n]) {
      const model = learned(each);
      const most = model.most(200_000_000n, 10_000);
      expect(model.limit(most)).toBeLessThanOrEqual(16_777_216n);
      const calls = Array.from({ length: most }, randomAuthorization);
      expect(batchCalldata(USDC, calls).length / 2).toBeLessThan(128 * 1024 - 512);
    }
  });

  test('fills a share where all that waits fits into it, and else is such that two make a block', () => {
    const model = learned(80_000n);
    const one = model.most(BLOCK, 1);
    expect(model.most(BLOCK, one)).toBe(one);
    const pair = model.most(BLOCK, one + 1);
    expect(pair).toBeLessThan(one);
    const used = 21_000n + 80_000n * BigInt(pair);
    expect(used + model.limit(pair)).toBeLessThanOrEqual(BLOCK);
    expect(21_000n + 80_000n * BigInt(one) + model.limit(one)).toBeGreaterThan(BLOCK);
  });
});

describe('a payment’s budget', () => {
  const each = (model: ReturnType<typeof createGasModel>) => model.limit(3) - model.limit(2);

  test('comes down to a quarter more than what payments take, and is never less than they took', () => {
    expect(each(learned(80_000n))).toBeGreaterThanOrEqual(100_000n);
    expect(each(learned(80_000n))).toBeLessThan(101_000n);
  });

  test('goes up at once', () => {
    const model = learned(80_000n);
    model.learn(21_000n + 120_000n * 100n, 100);
    expect(each(model)).toBe(150_000n);
  });

  test('is never more than a lone payment’s, nor less than any could do with', () => {
    expect(each(learned(10_000_000n))).toBe(SETTLE_GAS);
    expect(each(learned(1n))).toBe(50_000n);
  });
});

describe('spoilt batches', () => {
  test('make the next ones smaller, so that less can be burnt, but never too small; good ones make them large again', () => {
    const model = learned(80_000n);
    const before = model.most(BLOCK, 100);
    model.spoilt(100);
    expect(model.most(BLOCK, 100)).toBe(50);
    for (let batch = 0; batch < 10; batch++) model.spoilt(8);
    expect(model.most(BLOCK, 100)).toBe(8);
    for (let batch = 0; batch < 60; batch++) model.learn(21_000n + 80_000n * 8n, 8);
    expect(model.most(BLOCK, 100)).toBe(before);
  });

  test('raise the budgets, because these may have been too small', () => {
    const model = learned(80_000n);
    const before = model.limit(10);
    model.spoilt(10);
    expect(model.limit(10)).toBeGreaterThan(before);
  });
});
