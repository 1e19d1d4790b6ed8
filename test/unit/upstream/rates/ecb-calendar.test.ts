import { describe, expect, test } from 'vitest';
import { frankfurtDate, isDue } from '../../../../src/upstream/rates/fixing.ts';

const at = (iso: string) => Date.parse(iso);
const MINUTE = 60_000;

test.each([
  ['2026-11-20T22:59:00Z', '2026-11-20'],
  ['2026-11-20T23:00:00Z', '2026-11-21'],
  ['2026-07-01T21:59:00Z', '2026-07-01'],
  ['2026-07-01T22:00:00Z', '2026-07-02'],
])('%s is %s in Frankfurt', (iso, date) => {
  expect(frankfurtDate(at(iso))).toBe(date);
});

describe('isDue', () => {
  test.each([
    // Thursday's fixing serves until Friday 16:00 in Frankfurt (15:00 UTC in winter, 14:00 in summer), and Friday's until Monday 16:00.
    ['2026-11-19', '2026-11-20T14:59:00Z', false],
    ['2026-11-19', '2026-11-20T15:00:00Z', true],
    ['2026-11-20', '2026-11-20T15:01:00Z', false],
    ['2026-11-20', '2026-11-22T12:00:00Z', false],
    ['2026-11-20', '2026-11-23T14:59:00Z', false],
    ['2026-11-20', '2026-11-23T15:00:00Z', true],
    ['2026-06-30', '2026-07-01T13:59:00Z', false],
    ['2026-06-30', '2026-07-01T14:00:00Z', true],
  ])('%s, at %s: %o', (newest, now, due) => {
    expect(isDue(newest, at(now) - 24 * 60 * MINUTE, at(now))).toBe(due);
  });

  test.each([
    ['2026-11-20T15:20:00Z', 4, false],
    ['2026-11-20T15:20:00Z', 5, true],
    ['2026-11-20T18:00:00Z', 59, false],
    ['2026-11-20T18:00:00Z', 60, true],
  ])('while it is late, at %s: read %i minutes ago, %o', (now, minutes, due) => {
    expect(isDue('2026-11-19', at(now) - minutes * MINUTE, at(now))).toBe(due);
  });
});
