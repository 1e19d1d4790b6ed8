import { expect, test } from 'vitest';
import { createMinuteWindows, type Take, takeAll } from '../../../../src/lib/limits/count.ts';
import { createManualClock } from '../../../support/manual-clock.ts';

const clock = createManualClock(0);
const [payers, clients] = [createMinuteWindows(clock), createMinuteWindows(clock)];
const take = (key: string): Take[] => [
  { windows: payers, key, limit: 2, refusal: (seconds) => new Error(`payer, ${seconds} s`) },
  { windows: clients, key: 'one client', limit: 3, refusal: (seconds) => new Error(`client, ${seconds} s`) },
];
const counts = (key: string) => [payers.read(key).count, clients.read('one client').count];

test('an event counts under all of its limits or, refused by one, under none', () => {
  takeAll(take('a'));
  const takeBack = takeAll(take('a'));
  expect(counts('a')).toEqual([2, 2]);
  expect(() => takeAll(take('a'))).toThrow('payer, 60 s');
  takeAll(take('b'));
  expect(() => takeAll(take('c'))).toThrow('client, 60 s');
  expect([counts('a'), counts('b'), counts('c')]).toEqual([
    [2, 3],
    [1, 3],
    [0, 3],
  ]);
  takeBack();
  expect(counts('a')).toEqual([1, 2]);
  takeAll(take('c'));
});

test('a limit of 0 is off', () => {
  const windows = createMinuteWindows(clock);
  for (let time = 0; time < 3; time++) takeAll([{ windows, key: 'a', limit: 0, refusal: () => new Error('never') }]);
  expect(windows.read('a').count).toBe(3);
});
