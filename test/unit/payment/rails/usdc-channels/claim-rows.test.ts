import { describe, expect, test } from 'vitest';
import { isDue, rowOf, shortfallOf } from '../../../../../src/payment/channels/claim-health.ts';
import type { Channel } from '../../../../../src/store/ports/channels.ts';
import { channelState, channelTerms } from '../../../../support/ledger/channel-rows.ts';

const LIMITS = { threshold: 500n, ageMs: 1000 };
const SINCE = 1_800_000_000_000;
/** A channel with a balance of 10,000. */
function channelOf(
  charged: bigint,
  more: Partial<Channel> = {},
  state: Parameters<typeof channelState>[0] = {},
): Channel {
  return {
    ...channelTerms('a'),
    charged,
    writtenOff: 0n,
    signature: Buffer.alloc(65, 1),
    state: channelState(state),
    readAt: SINCE,
    usedAt: SINCE,
    unclaimedSince: SINCE,
    isConfirmed: true,
    claimRefusedAt: null,
    ...more,
  };
}

describe('a channel is due', () => {
  test.each<[string, Channel, number, boolean]>([
    ['when its unclaimed charges reach the threshold', channelOf(500n), 0, true],
    ['not while they are below it', channelOf(499n), 0, false],
    ['by what is unclaimed, and not by all charges', channelOf(900n, {}, { totalClaimed: 401n }), 0, false],
    ['by what is not written off', channelOf(900n, { writtenOff: 401n }), 0, false],
    ['when the oldest charge waits for long enough', channelOf(1n), 1000, true],
    ['not a moment before', channelOf(1n), 999, false],
    ['when a withdrawal could take what is charged', channelOf(2n, {}, { withdrawAmount: 9_999n }), 0, true],
    ['not when a withdrawal leaves all that is charged', channelOf(1n, {}, { withdrawAmount: 9_999n }), 0, false],
    ['not when a withdrawal takes one unit only', channelOf(400n, {}, { withdrawAmount: 1n }), 0, false],
    ['when the balance is gone already', channelOf(2n, {}, { balance: 1n }), 0, true],
    [
      'by a withdrawal and what is not written off',
      channelOf(9n, { writtenOff: 8n }, { withdrawAmount: 9_999n }),
      0,
      false,
    ],
    ['never where the ledger knows of no charge that waits', channelOf(900n, { unclaimedSince: null }), 5000, false],
    ['never without an unclaimed charge', channelOf(900n, {}, { totalClaimed: 900n, withdrawAmount: 1n }), 5000, false],
  ])('%s', (_, channel, waitedMs, expected) => {
    expect(isDue(channel, LIMITS, SINCE + waitedMs)).toBe(expected);
  });
});

describe('the row of a channel', () => {
  test('claims exactly what was charged', () => {
    expect(rowOf(channelOf(700n))).toMatchObject({ maxClaimableAmount: 700n, totalClaimed: 700n });
  });

  test('claims no more than the balance', () => {
    expect(rowOf(channelOf(700n, {}, { balance: 600n }))).toMatchObject({
      maxClaimableAmount: 700n,
      totalClaimed: 600n,
    });
  });

  test('does not exist where nothing is left to claim, or no voucher is known', () => {
    expect(rowOf(channelOf(700n, {}, { totalClaimed: 700n }))).toBeNull();
    expect(rowOf(channelOf(700n, {}, { balance: 600n, totalClaimed: 600n }))).toBeNull();
    expect(rowOf(channelOf(700n, { signature: null }))).toBeNull();
  });
});

test('what the balance cannot cover is short, less what is written off already', () => {
  expect(shortfallOf(channelOf(700n))).toBe(0n);
  expect(shortfallOf(channelOf(700n, {}, { balance: 600n }))).toBe(100n);
  expect(shortfallOf(channelOf(700n, { writtenOff: 60n }, { balance: 600n, totalClaimed: 500n }))).toBe(40n);
  expect(shortfallOf(channelOf(700n, { writtenOff: 100n }, { balance: 600n }))).toBe(0n);
  // What is claimed is paid, although a withdrawal has taken the rest of the balance since.
  expect(shortfallOf(channelOf(700n, {}, { balance: 500n, totalClaimed: 600n }))).toBe(100n);
});
