import { expect, test } from 'vitest';
import { createLookupSchedule } from '../../../../src/payment/settle-rows.ts';
import { createManualClock } from '../../../support/manual-clock.ts';

function open() {
  const clock = createManualClock(1_800_000_000_000);
  return { clock, schedule: createLookupSchedule(clock) };
}

test('a row that was never looked at is due, for the timer and for its buyer', () => {
  const { schedule } = open();
  expect([schedule.isDue('new'), schedule.isDueForBuyer('new')]).toEqual([true, true]);
});

test('a row without an end is due again after pauses that double, from a second to a minute', async () => {
  const { schedule, clock } = open();
  for (const seconds of [1, 2, 4, 8, 16, 32, 60, 60, 60]) {
    schedule.note('row', false);
    await clock.advance(seconds * 1000 - 1);
    expect(schedule.isDue('row'), `${seconds} s`).toBe(false);
    await clock.advance(1);
    expect(schedule.isDue('row'), `${seconds} s`).toBe(true);
  }
});

test('its buyer may have it looked at once a second, however often it was', async () => {
  const { schedule, clock } = open();
  for (let time = 0; time < 10; time++) {
    schedule.note('row', false);
    await clock.advance(999);
    expect(schedule.isDueForBuyer('row')).toBe(false);
    await clock.advance(1);
    expect(schedule.isDueForBuyer('row')).toBe(true);
  }
  expect(schedule.isDue('row')).toBe(false);
});

test('each row has pauses of its own', async () => {
  const { schedule, clock } = open();
  schedule.note('a', false);
  await clock.advance(1000);
  schedule.note('a', false);
  schedule.note('b', false);
  await clock.advance(1000);
  expect([schedule.isDue('a'), schedule.isDue('b'), schedule.isDue('c')]).toEqual([false, true, true]);
});

test('a row that has ended is forgotten', async () => {
  const { schedule, clock } = open();
  schedule.note('row', false);
  schedule.note('row', true);
  expect([schedule.isDue('row'), schedule.isDueForBuyer('row')]).toEqual([true, true]);
  schedule.note('row', false);
  // It begins anew.
  await clock.advance(1000);
  expect(schedule.isDue('row')).toBe(true);
});

test.each([
  ['for less than four minutes is remembered, with its pauses', 239_999, false],
  ['for four minutes is forgotten: another process wrote its end', 240_000, true],
])('a row that was not looked at %s', async (_, ms, isForgotten) => {
  const { schedule, clock } = open();
  schedule.note('row', false);
  schedule.note('row', false);
  schedule.note('younger', false);
  await clock.advance(1);
  for (let time = 0; time < 3; time++) schedule.note('younger', false);
  await clock.advance(ms - 1);
  schedule.note('another', true);
  // What is looked at now is its third look, or the first of a row that was forgotten.
  schedule.note('row', false);
  await clock.advance(1000);
  expect(schedule.isDue('row')).toBe(isForgotten);
  // One that was looked at a millisecond later stays in any case.
  schedule.note('younger', false);
  await clock.advance(15_000);
  expect(schedule.isDue('younger')).toBe(false);
});
