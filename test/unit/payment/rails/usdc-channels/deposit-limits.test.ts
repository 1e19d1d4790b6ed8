import { beforeEach, expect, test } from 'vitest';
import { createDepositLimits, type DepositLimits } from '../../../../../src/payment/channels/deposit.ts';
import type { Channel } from '../../../../../src/store/ports/channels.ts';
import { channelState, channelTerms, SEEN_AT } from '../../../../support/ledger/channel-rows.ts';
import { createManualClock, type ManualClock } from '../../../../support/manual-clock.ts';

const MIN = 1_000_000n;
/** What a payer or a client hears. */
const tooMany = (whose: 'payer' | 'client') => ({
  status: 429,
  code: 'too_many_deposits',
  charged: false,
  message:
    `this ${whose} has made too many deposits today whose money was not spent; ` +
    'use the channels that hold money, or pay each call by the entry "exact"',
});
const TOO_MANY = tooMany('payer');
let clock: ManualClock;
let limits: DepositLimits;
beforeEach(() => {
  clock = createManualClock(1_800_000_000_000);
  const config = { minDeposit: MIN, depositsADay: { payer: 1, client: 2 } };
  limits = createDepositLimits(clock, { getRefunded: async () => 900_000n }, config);
});

/** A channel with this balance and these charges. */
function channel(balance: bigint, charged: bigint, { refunds = 0n, payer = 1, writtenOff = 0n } = {}): Channel {
  const state = channelState({ balance, refundNonce: refunds });
  const times = { readAt: SEEN_AT, usedAt: SEEN_AT, unclaimedSince: null };
  return {
    ...channelTerms('a'),
    payer: Buffer.alloc(20, payer),
    charged,
    writtenOff,
    signature: null,
    state,
    isConfirmed: true,
    claimRefusedAt: null,
    ...times,
  };
}
const taken = (of: Channel, client = '1.2.3.4') => limits.take(of, client).then(() => 'taken');

test('a deposit into a new channel counts for its payer until the day is over', async () => {
  expect(await taken(channel(0n, 0n))).toBe('taken');
  await expect(limits.take(channel(0n, 0n), '9.9.9.9')).rejects.toMatchObject(TOO_MANY);
  await clock.advance(86_400_000);
  expect(await taken(channel(0n, 0n))).toBe('taken');
});

test('a deposit that was not sent is taken back, for the payer and for the client', async () => {
  for (let count = 0; count < 5; count++) (await limits.take(channel(0n, 0n), '1.2.3.4'))();
  expect(await taken(channel(0n, 0n))).toBe('taken');
});

test.each<[string, Channel]>([
  ['all was spent', channel(MIN, MIN)],
  ['half was spent', channel(2n * MIN, MIN)],
  ['half was spent besides what is written off', channel(MIN, MIN, { writtenOff: MIN / 2n })],
  ['twice as much was spent as a refund gave back', channel(MIN, MIN, { refunds: 1n })],
])('a top-up of a channel of which %s never counts', async (_what, spent) => {
  for (let count = 0; count < 5; count++) expect(await taken(spent)).toBe('taken');
  expect(await taken(channel(0n, 0n))).toBe('taken');
});

test.each<[string, Channel]>([
  ['less than half was spent', channel(2n * MIN, MIN - 1n)],
  ['the rest was refunded', channel(MIN / 2n, MIN / 2n, { refunds: 1n })],
  ['more was refunded than spent', channel(1000n, 1000n, { refunds: 1n })],
  ['the rest was withdrawn', channel(1000n, 1000n)],
  ['what was charged is written off', channel(0n, MIN, { writtenOff: MIN })],
  ['too much of what was charged is written off', channel(MIN, MIN, { writtenOff: MIN / 2n + 1n })],
])('a top-up of a channel of which %s counts', async (_what, recycled) => {
  expect(await taken(recycled)).toBe('taken');
  await expect(limits.take(recycled, '1.2.3.4')).rejects.toMatchObject(TOO_MANY);
});

test('a deposit that is only looked at is refused like others and counts for nothing', async () => {
  for (let count = 0; count < 5; count++) await limits.check(channel(0n, 0n), '1.2.3.4');
  expect(await taken(channel(0n, 0n))).toBe('taken');
  await expect(limits.check(channel(0n, 0n), '1.2.3.4')).rejects.toMatchObject(TOO_MANY);
  await limits.check(channel(MIN, MIN), '1.2.3.4');
});

test('many payers of one client, or of one IPv6 site, share what it may have', async () => {
  for (const payer of [1, 2]) expect(await taken(channel(0n, 0n, { payer }))).toBe('taken');
  await expect(limits.take(channel(0n, 0n, { payer: 3 }), '1.2.3.4')).rejects.toMatchObject(tooMany('client'));
  for (let at = 0; at < 8; at++)
    expect(await taken(channel(0n, 0n, { payer: 10 + at }), `2001:db8:1:${at}::/64`)).toBe('taken');
  const other = limits.take(channel(0n, 0n, { payer: 20 }), '2001:db8:1:9::/64');
  await expect(other).rejects.toMatchObject(tooMany('client'));
});
