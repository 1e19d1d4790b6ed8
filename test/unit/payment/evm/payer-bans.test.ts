import { expect, test } from 'vitest';
import { createPayerBans } from '../../../../src/payment/usdc/payer-reads.ts';
import { createManualClock } from '../../../support/manual-clock.ts';

const DAY_MS = 86_400_000;

test('a payer is refused for a day from its last offence, and no other payer', async () => {
  const clock = createManualClock(1_800_000_000_000);
  const bans = createPayerBans(clock);
  bans.add('0xa');
  expect([bans.has('0xa'), bans.has('0xb')]).toEqual([true, false]);
  await clock.advance(DAY_MS / 2);
  bans.add('0xa');
  await clock.advance(DAY_MS - 1);
  expect(bans.has('0xa')).toBe(true);
  await clock.advance(1);
  expect(bans.has('0xa')).toBe(false);
});

test('those that are refused now are named, and one whose day is over is not', async () => {
  const clock = createManualClock(1_800_000_000_000);
  const bans = createPayerBans(clock);
  bans.add('0xa');
  await clock.advance(1);
  bans.add('0xb');
  expect(bans.all()).toEqual(['0xa', '0xb']);
  await clock.advance(DAY_MS - 1);
  expect(bans.all()).toEqual(['0xb']);
});

test('they are bounded: the oldest is forgiven first', () => {
  const bans = createPayerBans(createManualClock(1_800_000_000_000));
  for (let payer = 0; payer <= 10_000; payer++) bans.add(`0x${payer}`);
  expect([bans.has('0x0'), bans.has('0x1'), bans.has('0x10000')]).toEqual([false, true, true]);
});
