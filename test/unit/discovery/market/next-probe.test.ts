import { describe, expect, test } from 'vitest';
import { afterAnswer, afterFailure, nextSlot, type Standing } from '../../../../src/discovery/market-schedule.ts';

const HOUR = 3_600_000;
const DAY = 24 * HOUR;
const NOW = 1_800_000_000_000;
const PLACE = 'a.example/x';
const WELL: Standing = { failures: 0, offlineAt: null, dueAt: 0 };

/** Fails every call, until the listing is dropped or the number of calls is reached. */
function failing(calls: number) {
  const course: { at: number; standing: Standing | null }[] = [];
  let standing: Standing | null = WELL;
  let at = NOW;
  for (let call = 0; call < calls && standing !== null; call += 1) {
    standing = afterFailure(PLACE, standing, at, HOUR);
    course.push({ at, standing });
    at = standing?.dueAt ?? at;
  }
  return course;
}

describe('the slot of a listing', () => {
  test('is the same in every interval, later than now and at most an interval away', () => {
    for (const after of [NOW, NOW + 1, NOW + HOUR - 1, NOW + 17 * HOUR + 5]) {
      const slot = nextSlot(PLACE, after, HOUR);
      expect(slot).toBeGreaterThan(after);
      expect(slot - after).toBeLessThanOrEqual(HOUR);
      expect(slot % HOUR).toBe(nextSlot(PLACE, NOW, HOUR) % HOUR);
    }
    const slot = nextSlot(PLACE, NOW, HOUR);
    expect(nextSlot(PLACE, slot, HOUR)).toBe(slot + HOUR);
  });

  test('differs between listings: no tenth of the hour is without calls, and none has a fifth of them', () => {
    const slots = Array.from({ length: 1000 }, (_, n) => nextSlot(`a.example/${n}`, NOW, HOUR) - NOW);
    const tenths = Array.from(
      { length: 10 },
      (_, n) => slots.filter((slot) => Math.ceil(slot / (HOUR / 10)) === n + 1).length,
    );
    expect(Math.min(...tenths)).toBeGreaterThan(0);
    expect(Math.max(...tenths)).toBeLessThan(200);
  });
});

describe('a listing that fails', () => {
  test('is offline from the third failure in a row, and called every hour until then', () => {
    const [first, second, third] = failing(3);
    expect([first?.standing?.offlineAt, second?.standing?.offlineAt]).toEqual([null, null]);
    expect(third?.standing).toMatchObject({ failures: 3, offlineAt: third?.at });
    expect(second!.at - first!.at).toBeLessThanOrEqual(HOUR);
    expect(third!.at - second!.at).toBe(HOUR);
  });

  test('is called less and less often, but at least four times a day', () => {
    const times = failing(12).map(({ at }) => at);
    const pauses = times.slice(2).map((at, n) => (times[n + 3] ?? at) - at);
    expect(pauses.slice(0, 6)).toEqual([HOUR, 2 * HOUR, 4 * HOUR, 6 * HOUR, 6 * HOUR, 6 * HOUR]);
  });

  test('is dropped by the first failing call 7 days after it went offline, not before', () => {
    const course = failing(100);
    const offlineAt = course[2]!.at;
    expect(course.at(-1)?.standing).toBeNull();
    expect(course.at(-1)!.at - offlineAt).toBeGreaterThanOrEqual(7 * DAY);
    expect(course.at(-2)!.at - offlineAt).toBeLessThan(7 * DAY);
  });

  test('is online again after one answer', () => {
    const away = failing(9).at(-1)!;
    expect(afterAnswer(PLACE, away.at, HOUR)).toEqual({
      failures: 0,
      offlineAt: null,
      dueAt: nextSlot(PLACE, away.at, HOUR),
    });
  });

  test('is not dropped for time without calls', () => {
    const standing = afterFailure(PLACE, WELL, NOW, HOUR)!;
    expect(afterFailure(PLACE, standing, NOW + 30 * DAY, HOUR)).toMatchObject({ failures: 2, offlineAt: null });
  });
});
