import { expect, test } from 'vitest';
import { daysBetween, isCalendarDate, weekdaysBetween } from '../../../src/lib/clock.ts';

test.each(['2024-02-29', '1999-01-04', '2026-12-31', '2000-02-29'])('%s is a date', (text) => {
  expect(isCalendarDate(text)).toBe(true);
});

test.each([
  '2026-02-29',
  '1900-02-29',
  '2026-13-01',
  '2026-00-10',
  '2026-04-31',
  '2026-1-1',
  '20260101',
  '2026-01-01T00:00:00Z',
  '',
  ' 2026-01-01',
  '２０２６-01-01',
])('%o is none', (text) => {
  expect(isCalendarDate(text)).toBe(false);
});

test('days are counted across months and leap days', () => {
  expect(daysBetween('2024-02-28', '2024-03-01')).toBe(2);
  expect(daysBetween('2026-03-27', '2026-03-30')).toBe(3);
  expect(daysBetween('2026-03-27', '2026-03-27')).toBe(0);
});

test('weekdays are counted over a weekend, without the first day', () => {
  expect(weekdaysBetween('2026-03-27', '2026-03-27')).toBe(0);
  expect(weekdaysBetween('2026-03-27', '2026-03-29')).toBe(0);
  expect(weekdaysBetween('2026-03-26', '2026-03-30')).toBe(2);
});
