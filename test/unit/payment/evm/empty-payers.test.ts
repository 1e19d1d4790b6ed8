import { expect, test } from 'vitest';
import { createEmptyPayers } from '../../../../src/payment/usdc/payer-reads.ts';
import { createManualClock } from '../../../support/manual-clock.ts';

function open() {
  const clock = createManualClock(1_800_000_000_000);
  return { clock, empty: createEmptyPayers(clock) };
}

test('a payer that was just seen to hold less than the price is known to, and one that was not seen is not', () => {
  const { empty } = open();
  empty.note('poor', 999n);
  expect([empty.secondsBelow('poor', 1000n) > 0, empty.secondsBelow('poor', 999n) > 0]).toEqual([true, false]);
  expect(empty.secondsBelow('unseen', 1000n) > 0).toBe(false);
});

test('what was seen is good for three seconds, because money may have come since', async () => {
  const { empty, clock } = open();
  empty.note('poor', 0n);
  expect(empty.secondsBelow('poor', 1n)).toBe(3);
  await clock.advance(2999);
  expect(empty.secondsBelow('poor', 1n) > 0).toBe(true);
  await clock.advance(1);
  expect(empty.secondsBelow('poor', 1n) > 0).toBe(false);
});

test('what was seen last counts, for its own three seconds', async () => {
  const { empty, clock } = open();
  empty.note('payer', 0n);
  await clock.advance(2000);
  empty.note('payer', 500n);
  expect([empty.secondsBelow('payer', 500n) > 0, empty.secondsBelow('payer', 501n) > 0]).toEqual([false, true]);
  await clock.advance(2000);
  expect(empty.secondsBelow('payer', 501n) > 0).toBe(true);
});

test('no more are remembered than memory has room for: the longest known goes first', () => {
  const { empty } = open();
  for (let at = 0; at < 10_000; at++) empty.note(`payer ${at}`, 0n);
  // Seen again, so that another one is the longest known.
  empty.note('payer 0', 0n);
  expect(empty.secondsBelow('payer 1', 1n) > 0).toBe(true);
  empty.note('one more', 0n);
  const known = ['payer 0', 'payer 1', 'payer 2', 'one more'].map((payer) => empty.secondsBelow(payer, 1n) > 0);
  expect(known).toEqual([true, false, true, true]);
});
