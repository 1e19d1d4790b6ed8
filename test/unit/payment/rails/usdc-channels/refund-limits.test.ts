import { describe, expect, test } from 'vitest';
import { amountOf, checkBought, checkPause, createRefundLimits } from '../../../../../src/payment/channels/refund.ts';
import type { ChannelOperation } from '../../../../../src/store/ports/channels.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';

const DAY_SECONDS = 86_400;
const tooSoon = (retryAfterSeconds: number) =>
  expect.objectContaining({ status: 429, code: 'refund_too_soon', retryAfterSeconds });

const by = (signer: string, client = '10.9.9.9') => ({ signer, client, isBuyer: true });
const other = (signer: string, client = '10.9.9.9') => ({ signer, client, isBuyer: false });

describe('refunds of a day', () => {
  test('are three for a payer, and each is given again a day after the first', () => {
    const clock = createManualClock(0);
    const limits = createRefundLimits(clock);
    for (let count = 0; count < 3; count++) limits.take(by('a'));
    expect(() => limits.take(by('a'))).toThrow(tooSoon(DAY_SECONDS));
    expect(() => limits.take(by('a'))).toThrow('this payer has had 3 refunds for the buyers of a channel today');
    limits.take(by('b'));
    clock.advance(DAY_SECONDS * 1000);
    expect(() => limits.take(by('a'))).not.toThrow();
  });

  test('are a hundred for all payers together', () => {
    const limits = createRefundLimits(createManualClock(0));
    for (let count = 0; count < 100; count++) limits.take(by(`payer ${count}`, `10.0.0.${count}`));
    expect(() => limits.take(by('another', '10.0.1.1'))).toThrow(tooSoon(DAY_SECONDS));
    expect(() => limits.take(by('another', '10.0.1.1'))).toThrow('too many channels were refunded today');
  });

  test('are twenty for a client that buys for many payers, and four times as many for an IPv6 site', () => {
    const limits = createRefundLimits(createManualClock(0));
    for (let count = 0; count < 20; count++) limits.take(by(`payer ${count}`));
    expect(() => limits.take(by('another'))).toThrow(tooSoon(DAY_SECONDS));
    expect(() => limits.take(by('another'))).toThrow('this client has asked for too many refunds today');
    limits.take(by('another', '10.9.9.8'));
    for (let count = 0; count < 79; count++) limits.take(by(`more ${count}`, `2001:db8:1:${count % 8}::/64`));
    expect(() => limits.take(by('more', '2001:db8:1:9::/64'))).toThrow('too many channels were refunded today');
    const other = createRefundLimits(createManualClock(0));
    for (let count = 0; count < 80; count++) other.take(by(`more ${count}`, `2001:db8:1:${count % 8}::/64`));
    expect(() => other.take(by('more', '2001:db8:1:9::/64'))).toThrow('this client has asked for too many refunds');
  });

  test('are one for a payer and three for a client that has not bought, and leave the payer its own', () => {
    const limits = createRefundLimits(createManualClock(0));
    limits.take(other('a'));
    expect(() => limits.take(other('a', '10.9.9.8'))).toThrow(tooSoon(DAY_SECONDS));
    expect(() => limits.take(other('a', '10.9.9.8'))).toThrow(
      'this payer has had 1 refunds for clients that are not the last buyers of a channel today',
    );
    for (const payer of ['b', 'c']) limits.take(other(payer));
    expect(() => limits.take(other('d'))).toThrow('this client has asked for too many refunds today');
    for (let count = 0; count < 3; count++) limits.take(by('a'));
    expect(() => limits.take(by('a'))).toThrow('this payer has had 3 refunds');
  });

  test('are a quarter of all for clients that have not bought, so that the buyers have the rest', () => {
    const limits = createRefundLimits(createManualClock(0));
    for (let count = 0; count < 25; count++) limits.take(other(`payer ${count}`, `10.1.0.${count}`));
    expect(() => limits.take(other('another', '10.1.1.1'))).toThrow('too many channels were refunded today');
    for (let count = 0; count < 75; count++) limits.take(by(`buyer ${count}`, `10.2.0.${count}`));
    expect(() => limits.take(by('last', '10.2.1.1'))).toThrow('too many channels were refunded today');
  });

  test('do not count one that was not begun', () => {
    const limits = createRefundLimits(createManualClock(0));
    for (let count = 0; count < 200; count++) limits.take(by('a'))();
    for (let count = 0; count < 3; count++) limits.take(by('a'));
    expect(() => limits.take(by('a'))).toThrow(tooSoon(DAY_SECONDS));
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

test('a channel that has bought nothing is not refunded by us, and one that has bought a unit is', () => {
  expect(() => checkBought({ charged: 0n })).toThrow(
    expect.objectContaining({ reason: 'invalid_batch_settlement_evm_refund_no_balance' }),
  );
  expect(() => checkBought({ charged: 1n })).not.toThrow();
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
  const state = { balance: 500_000n, totalClaimed: 0n, withdrawAmount: 0n, withdrawAt: 0, refundNonce: 1n, block: 1 };
  const holding = { state, charged: 100_000n };

  test('waits for ten minutes after the end of the last one, and says for how long', () => {
    expect(() => checkPause(holding, null, last(1000), 1000)).toThrow(tooSoon(600));
    expect(() => checkPause(holding, null, last(1000), 1001)).toThrow(tooSoon(600));
    expect(() => checkPause(holding, null, last(1000), 1001)).toThrow('this channel was refunded a moment ago');
    expect(() => checkPause(holding, null, last(1000), 600_999)).toThrow(tooSoon(1));
    expect(() => checkPause(holding, null, last(1000), 601_000)).not.toThrow();
  });

  test('is said to be made where nothing is left, so that a client which repeats it does not wait', () => {
    const empty = { state, charged: 500_000n };
    const nothingLeft = expect.objectContaining({ reason: 'invalid_batch_settlement_evm_refund_no_balance' });
    expect(() => checkPause(empty, null, last(1000), 1001)).toThrow(nothingLeft);
    expect(() => checkPause(empty, null, last(1000), 601_000)).not.toThrow();
  });

  test('does not wait where there was none, or none that has ended', () => {
    expect(() => checkPause(holding, null, null, 0)).not.toThrow();
    expect(() => checkPause(holding, null, last(null), 0)).not.toThrow();
  });
});
