import { describe, expect, test } from 'vitest';
import { createMinuteWindows, MAX_CLIENTS } from '../../../../src/lib/limits/count.ts';
import { createManualClock } from '../../../support/manual-clock.ts';

describe('a client’s minute', () => {
  test('begins with its first count, and ends to the millisecond', async () => {
    const clock = createManualClock(1_000_000);
    const windows = createMinuteWindows(clock);
    expect(windows.count('a')).toEqual({ count: 1, resetSeconds: 60 });
    await clock.advance(20_500);
    expect([windows.count('a'), windows.count('b')]).toEqual([
      { count: 2, resetSeconds: 40 },
      { count: 1, resetSeconds: 60 },
    ]);
    await clock.advance(39_499);
    expect(windows.count('a')).toEqual({ count: 3, resetSeconds: 1 });
    await clock.advance(1);
    expect([windows.count('a').count, windows.count('b').count]).toEqual([1, 2]);
  });

  test('takes back only events that were counted in it, and none after it has ended', async () => {
    const clock = createManualClock(0);
    const windows = createMinuteWindows(clock);
    windows.takeBack('a');
    windows.count('a');
    windows.count('a');
    for (let time = 0; time < 4; time++) windows.takeBack('a');
    expect(windows.count('a')).toEqual({ count: 1, resetSeconds: 60 });
    await clock.advance(59_999);
    windows.takeBack('a');
    expect(windows.count('a').count).toBe(1);
    await clock.advance(1);
    windows.takeBack('a');
    expect(windows.count('a').count).toBe(1);
  });
});

describe('of more clients than are kept', () => {
  test('the one whose minute began first is dropped', async () => {
    const clock = createManualClock(0);
    const windows = createMinuteWindows(clock, 2);
    for (const client of ['a', 'b', 'a', 'c']) windows.count(client);
    expect([windows.count('b').count, windows.count('c').count, windows.count('a').count]).toEqual([2, 2, 1]);
  });

  test('a minute that begins anew is the youngest', async () => {
    const clock = createManualClock(0);
    const windows = createMinuteWindows(clock, 2);
    windows.count('a');
    await clock.advance(30_000);
    windows.count('b');
    await clock.advance(30_000);
    windows.count('a');
    windows.count('c');
    expect([windows.count('a').count, windows.count('b').count]).toEqual([2, 1]);
  });

  test('ten thousand are kept', () => {
    const windows = createMinuteWindows(createManualClock(0));
    for (let at = 0; at < MAX_CLIENTS; at++) windows.count(`${at}`);
    expect([MAX_CLIENTS, windows.count('0').count]).toEqual([10_000, 2]);
    windows.count('one more');
    expect(windows.count('0').count).toBe(1);
  });
});
