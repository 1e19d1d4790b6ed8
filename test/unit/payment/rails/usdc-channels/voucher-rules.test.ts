import { expect, test } from 'vitest';
import { checkClaimable } from '../../../../../src/payment/rails/usdc-channels/voucher-rules.ts';
import type { Channel } from '../../../../../src/store/ports/channels.ts';
import { channelState, channelTerms, SEEN_AT } from '../../../../support/ledger/channel-rows.ts';

const channelOf = (unclaimedSince: number | null): Channel => ({
  ...channelTerms('a'),
  ...{ charged: 100n, writtenOff: 0n, signature: Buffer.alloc(65, 1), state: channelState() },
  ...{ readAt: SEEN_AT, usedAt: SEEN_AT, unclaimedSince },
});

test.each<[string, number | null, string | null, number, boolean]>([
  ['while claims are sent, however long a charge waits', SEEN_AT, null, 9_000, true],
  ['for twice the planned time although no claim can be sent', SEEN_AT, 'no gas', 2_000, true],
  ['where every charge is claimed, although no claim can be sent', null, 'no gas', 9_000, true],
  ['no longer than that while no claim can be sent', SEEN_AT, 'no gas', 2_001, false],
])('vouchers are sold %s', (_, since, unavailable, waitedMs, isSold) => {
  const check = () => checkClaimable(channelOf(since), { unavailable, claimAfterMs: 1_000, nowMs: SEEN_AT + waitedMs });
  if (isSold) expect(check).not.toThrow();
  else expect(check).toThrow(expect.objectContaining({ status: 503, code: 'settlement_unavailable', charged: false }));
});
