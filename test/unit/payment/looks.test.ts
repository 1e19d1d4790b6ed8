import { expect, test } from 'vitest';
import { createLooks } from '../../../src/payment/settle-rows.ts';
import { createManualClock } from '../../support/manual-clock.ts';

function open() {
  const clock = createManualClock(1_800_000_000_000);
  return { clock, looks: createLooks(clock) };
}

test('a row that was never looked at is due, for the timer and for its buyer', () => {
  const { looks } = open();
  expect([looks.isDue('new'), looks.isDueForBuyer('new')]).toEqual([true, true]);
});

test('a row without an end is due again after pauses that double, from a second to a minute', async () => {
  const { looks, clock } = open();
  for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60, 60]) {
    looks.note('row', false);
    await clock.advance(seconds * 1000 - 1);
    expect(looks.isDue('row'), `${seconds} s`).toBe(false);
    await clock.advance(1);
    expect(looks.isDue('row'), `${seconds} s`).toBe(true);
  }
});

test('its buyer may have it looked at once a second, however often it was', async () => {
  const { looks, clock } = open();
  for (let time = 0; time < 10; time++) {
    looks.note('row', false);
    await clock.advance(999);
    expect(looks.isDueForBuyer('row')).toBe(false);
    await clock.advance(1);
    expect(looks.isDueForBuyer('row')).toBe(true);
  }
  expect(looks.isDue('row')).toBe(false);
});

test('each row has pauses of its own', async () => {
  const { looks, clock } = open();
  looks.note('a', false);
  await clock.advance(1000);
  looks.note('a', false);
  looks.note('b', false);
  await clock.advance(1000);
  expect([looks.isDue('a'), looks.isDue('b'), looks.isDue('c')]).toEqual([false, true, true]);
});

test('a row that has ended is forgotten', async () => {
  const { looks, clock } = open();
  looks.note('row', false);
  looks.note('row', true);
  expect([looks.isDue('row'), looks.isDueForBuyer('row')]).toEqual([true, true]);
  looks.note('row', false);
  // It begins anew.
  await clock.advance(1000);
  expect(looks.isDue('row')).toBe(true);
});

test.each([
  ['for less than four minutes is remembered, with its pauses', 239_999, false],
  ['for four minutes is forgotten: another process wrote its end', 240_000, true],
])('a row that was not looked at %s', async (_, ms, isForgotten) => {
  const { looks, clock } = open();
  looks.note('row', false);
  looks.note('row', false);
  looks.note('younger', false);
  await clock.advance(1);
  for (let time = 0; time < 3; time++) looks.note('younger', false);
  await clock.advance(ms - 1);
  looks.note('another', true);
  // What is looked at now is its third look, or the first of a row that was forgotten.
  looks.note('row', false);
  await clock.advance(1000);
  expect(looks.isDue('row')).toBe(isForgotten);
  // One that was looked at a millisecond later stays in any case.
  looks.note('younger', false);
  await clock.advance(15_000);
  expect(looks.isDue('younger')).toBe(false);
});
