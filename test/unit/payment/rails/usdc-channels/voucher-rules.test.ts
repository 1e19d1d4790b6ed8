import { describe, expect, test } from 'vitest';
import { checkClaimable, faultOf, StaleVoucher } from '../../../../../src/payment/channels/voucher-sale.ts';
import type { Channel } from '../../../../../src/store/ports/channels.ts';
import { channelState, channelTerms, SEEN_AT } from '../../../../support/ledger/channel-rows.ts';

const channelOf = (unclaimedSince: number | null, state: Parameters<typeof channelState>[0] = {}): Channel => ({
  ...channelTerms('a'),
  charged: 100n,
  writtenOff: 0n,
  signature: Buffer.alloc(65, 1),
  state: channelState(state),
  readAt: SEEN_AT,
  usedAt: SEEN_AT,
  unclaimedSince,
  isConfirmed: true,
  claimRefusedAt: null,
});

test.each<[string, number | null, number, boolean, boolean]>([
  ['for twice the planned time although no claim can be sent', SEEN_AT, 2_000, false, true],
  ['where every charge is claimed, although no claim can be sent', null, 9_000, false, true],
  ['no longer than that while no claim can be sent', SEEN_AT, 2_001, false, false],
  ['no longer once all channels together owe too much', null, 0, true, false],
])('vouchers are sold %s', (_, since, waitedMs, isTooMuch, isSold) => {
  const bounds = { threshold: 7n, ageMs: 1_000 };
  const trouble = { unavailable: 'no gas', isTooMuch, bounds, nowMs: SEEN_AT + waitedMs };
  const check = () => checkClaimable(channelOf(since), trouble);
  if (isSold) expect(check).not.toThrow();
  else expect(check).toThrow(expect.objectContaining({ status: 503, code: 'settlement_unavailable', charged: false }));
});

describe('a voucher over the charges and the price', () => {
  // The channel is charged 100, and the price is 50.
  const judged = (max: bigint, state: Parameters<typeof channelState>[0] = {}, deposit = 0n) => {
    const fault = faultOf(channelOf(null, state), { max, price: 50n, deposit });
    if (fault === null) return 'taken';
    const { refusal, mayBeOld } = fault;
    const kind = refusal instanceof StaleVoucher ? `stale ${refusal.code}` : 'refused';
    return [kind, refusal.reason.replace('invalid_batch_settlement_evm_', ''), mayBeOld ? 'may be old' : 'certain'];
  };
  const stale = (code: string, certainty: string) => [`stale ${code}`, code, certainty];

  test.each<[string, () => ReturnType<typeof judged>, ReturnType<typeof judged>]>([
    ['is taken where the balance is more', () => judged(150n), 'taken'],
    ['is taken where the balance is just enough', () => judged(150n, { balance: 150n }), 'taken'],
    ['is taken where the deposit makes it enough', () => judged(150n, { balance: 100n }, 50n), 'taken'],
    ['is taken where a withdrawal leaves enough', () => judged(150n, { balance: 160n, withdrawAmount: 10n }), 'taken'],
    ['is stale where it is too high', () => judged(151n), stale('cumulative_amount_mismatch', 'certain')],
    ['is stale where it is too low', () => judged(149n), stale('cumulative_amount_mismatch', 'certain')],
    [
      'is stale where it is claimed',
      () => judged(100n, { totalClaimed: 100n }),
      stale('cumulative_below_claimed', 'certain'),
    ],
    ['is taken where it is one more than claimed', () => judged(150n, { totalClaimed: 149n }), 'taken'],
    [
      'is refused without a channel',
      () => judged(150n, { balance: 0n }),
      ['refused', 'channel_not_found', 'may be old'],
    ],
    [
      'is refused where a withdrawal takes one unit of it',
      () => judged(150n, { balance: 160n, withdrawAmount: 11n }),
      ['refused', 'cumulative_exceeds_balance', 'may be old'],
    ],
    [
      'is refused where a withdrawal takes a unit of a balance that is just enough',
      () => judged(150n, { balance: 150n, withdrawAmount: 1n }),
      ['refused', 'cumulative_exceeds_balance', 'may be old'],
    ],
    [
      'is stale where the balance lacks one unit',
      () => judged(150n, { balance: 149n }),
      stale('cumulative_amount_mismatch', 'may be old'),
    ],
  ])('%s', (_, shown, expected) => {
    expect(shown()).toEqual(expected);
  });

  test('that the balance does not cover counts as a failure, and one over old charges is forgiven', () => {
    const forgiven = (max: bigint, balance: bigint) => {
      const fault = faultOf(channelOf(null, { balance }), { max, price: 50n, deposit: 0n });
      return fault?.refusal.correction?.isForgiven;
    };
    expect([forgiven(150n, 149n), forgiven(151n, 149n)]).toEqual([false, true]);
  });

  test('that is stale tells the charges and the client’s own last voucher', () => {
    const fault = faultOf(channelOf(null), { max: 1n, price: 50n, deposit: 0n });
    expect(fault?.refusal).toMatchObject({ charged: 100n, settlement: null });
    expect(fault?.refusal.correction).toEqual({
      scheme: 'batch-settlement',
      isForgiven: true,
      extra: {
        channelState: {
          channelId: `0x${Buffer.from(channelTerms('a').id).toString('hex')}`,
          balance: '10000',
          totalClaimed: '0',
          withdrawRequestedAt: 0,
          refundNonce: '0',
          chargedCumulativeAmount: '100',
        },
        voucherState: { signedMaxClaimable: '100', signature: `0x${'01'.repeat(65)}` },
      },
    });
  });
});
