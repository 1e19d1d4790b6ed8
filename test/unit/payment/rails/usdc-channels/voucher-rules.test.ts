import { expect, test } from 'vitest';
import { checkClaimable } from '../../../../../src/payment/rails/usdc-channels/voucher-rules.ts';
import type { Channel } from '../../../../../src/store/ports/channels.ts';
import { channelState, channelTerms, SEEN_AT } from '../../../../support/ledger/channel-rows.ts';

const channelOf = (unclaimedSince: number | null): Channel => ({
  ...channelTerms('a'),
  ...{ charged: 100n, writtenOff: 0n, signature: Buffer.alloc(65, 1), state: channelState() },
  ...{ readAt: SEEN_AT, usedAt: SEEN_AT, unclaimedSince },
});

test.each<[string, number | null, string | null, number, boolean, bigint?]>([
  ['while claims are sent, however long a charge waits', SEEN_AT, null, 9_000, true],
  ['for twice the planned time although no claim can be sent', SEEN_AT, 'no gas', 2_000, true],
  ['where every charge is claimed, although no claim can be sent', null, 'no gas', 9_000, true],
  ['no longer than that while no claim can be sent', SEEN_AT, 'no gas', 2_001, false],
  ['while all channels together owe ten times the threshold of a claim', null, 'no gas', 0, true, 70n],
  ['no longer once all channels together owe more than that', null, 'no gas', 0, false, 71n],
])('vouchers are sold %s', (_, since, unavailable, waitedMs, isSold, overdue = 0n) => {
  const limits = { threshold: 7n, ageMs: 1_000 };
  const trouble = { unavailable, overdue, limits, nowMs: SEEN_AT + waitedMs };
  const check = () => checkClaimable(channelOf(since), trouble);
  if (isSold) expect(check).not.toThrow();
  else expect(check).toThrow(expect.objectContaining({ status: 503, code: 'settlement_unavailable', charged: false }));
});
