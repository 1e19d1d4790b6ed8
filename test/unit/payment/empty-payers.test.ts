import { expect, test } from 'vitest';
import { createEmptyPayers } from '../../../src/payment/usdc/empty-payers.ts';
import { createManualClock } from '../../support/manual-clock.ts';

function open() {
  const clock = createManualClock(1_800_000_000_000);
  return { clock, empty: createEmptyPayers(clock) };
}

test('a payer that was just seen to hold less than the price is known to, and one that was not seen is not', () => {
  const { empty } = open();
  empty.note('poor', 999n);
  expect([empty.isBelow('poor', 1000n), empty.isBelow('poor', 999n)]).toEqual([true, false]);
  expect(empty.isBelow('unseen', 1000n)).toBe(false);
});

test('what was seen is good for three seconds, because money may have come since', async () => {
  const { empty, clock } = open();
  empty.note('poor', 0n);
  await clock.advance(2999);
  expect(empty.isBelow('poor', 1n)).toBe(true);
  await clock.advance(1);
  expect(empty.isBelow('poor', 1n)).toBe(false);
});

test('what was seen last counts, for its own three seconds', async () => {
  const { empty, clock } = open();
  empty.note('payer', 0n);
  await clock.advance(2000);
  empty.note('payer', 500n);
  expect([empty.isBelow('payer', 500n), empty.isBelow('payer', 501n)]).toEqual([false, true]);
  await clock.advance(2000);
  expect(empty.isBelow('payer', 501n)).toBe(true);
});

test('no more are remembered than memory has room for: the longest known goes first', () => {
  const { empty } = open();
  for (let at = 0; at < 10_000; at++) empty.note(`payer ${at}`, 0n);
  // Seen again, so that another one is the longest known.
  empty.note('payer 0', 0n);
  expect(empty.isBelow('payer 1', 1n)).toBe(true);
  empty.note('one more', 0n);
  const known = ['payer 0', 'payer 1', 'payer 2', 'one more'].map((payer) => empty.isBelow(payer, 1n));
  expect(known).toEqual([true, false, true, true]);
});
