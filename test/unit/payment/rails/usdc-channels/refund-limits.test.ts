import { describe, expect, test } from 'vitest';
import {
  amountOf,
  checkPause,
  createRefundLimits,
} from '../../../../../src/payment/rails/usdc-channels/refund-limits.ts';
import type { ChannelOperation } from '../../../../../src/store/ports/channels.ts';
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
    expect(() => limits.take('a')).toThrow('this payer has had 3 refunds today');
    limits.take('b');
    clock.advance(DAY_SECONDS * 1000);
    expect(() => limits.take('a')).not.toThrow();
  });

  test('are a hundred for all payers together', () => {
    const limits = createRefundLimits(createManualClock(0));
    for (let count = 0; count < 100; count++) limits.take(`payer ${count}`);
    expect(() => limits.take('another')).toThrow(tooSoon(DAY_SECONDS));
    expect(() => limits.take('another')).toThrow('too many channels were refunded today');
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

describe('a refund of a part', () => {
  const state = { balance: 500_000n, totalClaimed: 0n, withdrawAmount: 0n, withdrawAt: 0, refundNonce: 0n, block: 1 };
  const refused = expect.objectContaining({ reason: 'invalid_batch_settlement_evm_refund_amount_invalid' });

  test('is at least 0.1 USDC, and at most what is left', () => {
    const asked = (amount: bigint) => () => amountOf({ state, charged: 100_000n }, amount);
    for (const amount of [0n, 99_999n, 400_001n]) expect(asked(amount)).toThrow(refused);
    for (const amount of [100_000n, 100_001n, 399_999n, 400_000n]) expect(asked(amount)()).toBe(amount);
  });

  test('may be all that is left where that is less than a part must be', () => {
    expect(amountOf({ state, charged: 450_000n }, 50_000n)).toBe(50_000n);
    expect(() => amountOf({ state, charged: 450_000n }, 49_999n)).toThrow(refused);
  });
});

describe('the next refund of a channel', () => {
  const last = (endedAt: number | null) => ({ endedAt }) as ChannelOperation;

  test('waits for ten minutes after the end of the last one, and says for how long', () => {
    expect(() => checkPause(last(1000), 1000)).toThrow(tooSoon(600));
    expect(() => checkPause(last(1000), 1001)).toThrow(tooSoon(600));
    expect(() => checkPause(last(1000), 1001)).toThrow('this channel was refunded a moment ago');
    expect(() => checkPause(last(1000), 600_999)).toThrow(tooSoon(1));
    expect(() => checkPause(last(1000), 601_000)).not.toThrow();
  });

  test('does not wait where there was none, or none that has ended', () => {
    expect(() => checkPause(null, 0)).not.toThrow();
    expect(() => checkPause(last(null), 0)).not.toThrow();
  });
});
