import { expect, test } from 'vitest';
import { createIds } from '../../../src/lib/clock.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const START = 1_795_200_000_000;

test('ids are different and sort in the order in which they were made, within a millisecond, over many draws and when the clock steps back', async () => {
  const clock = createManualClock(START);
  let back = 0;
  const nextId = createIds({ ...clock, nowMs: () => clock.nowMs() - back });
  const ids: string[] = [];
  for (let at = 0; at < 1000; at++) {
    if (at % 100 === 99) await clock.advance(1);
    if (at === 500) back = 3000;
    ids.push(nextId());
  }
  expect(new Set(ids).size).toBe(1000);
  expect([...ids].sort()).toEqual(ids);
  expect(ids.every((id) => /^[0-9a-f]{32}$/.test(id))).toBe(true);
});

test('two makers at the same moment share no id: the end is random, and drawn once for one id', () => {
  const clock = createManualClock(START);
  const makers = [createIds(clock), createIds(clock)];
  const ends = makers.flatMap((nextId) => Array.from({ length: 200 }, () => nextId().slice(16)));
  expect(new Set(ends).size).toBe(400);
});
