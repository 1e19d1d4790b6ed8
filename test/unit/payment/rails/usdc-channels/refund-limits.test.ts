import { describe, expect, test } from 'vitest';
import { amountOf, createRefundLimits } from '../../../../../src/payment/rails/usdc-channels/refund-limits.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';

const DAY_SECONDS = 86_400;
const tooSoon = (retryAfterSeconds: number) =>
  expect.objectContaining({ status: 429, code: 'refund_too_soon', retryAfterSeconds });

describe('refunds of a day', () => {
  test('are three for a payer, and each is given again a day after the first', () => {
    const clock = createManualClock(0);
    const limits = createRefundLimits(clock);
    for (let count = 0; count < 3; count++) limits.take('a');
    expect(() => limits.take('a')).toThrow(tooSoon(DAY_SECONDS));
    limits.take('b');
    clock.advance(DAY_SECONDS * 1000);
    expect(() => limits.take('a')).not.toThrow();
  });

  test('are a hundred for all payers together', () => {
    const limits = createRefundLimits(createManualClock(0));
    for (let count = 0; count < 100; count++) limits.take(`payer ${count}`);
    expect(() => limits.take('another')).toThrow(tooSoon(DAY_SECONDS));
  });

  test('do not count one that was not begun', () => {
    const limits = createRefundLimits(createManualClock(0));
    for (let count = 0; count < 200; count++) limits.take('a')();
    for (let count = 0; count < 3; count++) limits.take('a');
    expect(() => limits.take('a')).toThrow(tooSoon(DAY_SECONDS));
  });
});

test('a refund of exactly what is left needs no more than a full one', () => {
  const state = { balance: 50_000n, totalClaimed: 0n, withdrawAmount: 0n, withdrawAt: 0, refundNonce: 0n, block: 1 };
  expect(amountOf({ state, charged: 0n }, 50_000n)).toBe(50_000n);
  expect(amountOf({ state, charged: 40_000n }, null)).toBe(10_000n);
  expect(() => amountOf({ state, charged: 40_001n }, null)).toThrow(
    expect.objectContaining({ reason: 'invalid_batch_settlement_evm_refund_no_balance' }),
  );
});
