import { expect, test } from 'vitest';
import { secondsOf, secondsOfPdfDate } from '../../../../src/upstream/web/page-head.ts';

const MAY_1 = Date.UTC(2024, 4, 1) / 1000;
const HOUR = 3600;

test.each([
  ['2024-05-01', MAY_1],
  ['2024/5/1', MAY_1],
  ['2024-05-01T10:00:00Z', MAY_1 + 10 * HOUR],
  ['2024-05-01T10:00:00+02:00', MAY_1 + 8 * HOUR],
  ['2024-05-01T10:00:00.5+0200', MAY_1 + 8 * HOUR],
  // A time without a zone is taken as UTC, wherever this runs.
  ['2024-05-01T10:00:00', MAY_1 + 10 * HOUR],
  ['2024-05-01 10:00', MAY_1 + 10 * HOUR],
  ['May 1, 2024', MAY_1],
  ['Wed, 01 May 2024 10:00:00 GMT', MAY_1 + 10 * HOUR],
  // Ambiguous, without a day, no date, or out of all bounds.
  ['01/05/2024', null],
  ['2024', null],
  ['yesterday', null],
  ['chapter 12', null],
  ['2024-13-45', null],
  ['9999-01-01', null],
  ['1 May', null],
  ['', null],
  [null, null],
])('%j is at %s', (text, seconds) => {
  expect(secondsOf(text)).toBe(seconds);
});

test.each([
  ['D:20240501100000Z', MAY_1 + 10 * HOUR],
  ["D:20240501100000+02'00'", MAY_1 + 8 * HOUR],
  ['D:20240501', MAY_1],
  ['20240501', MAY_1],
  ['D:2024', Date.UTC(2024, 0, 1) / 1000],
  ['today', null],
  [null, null],
])('%j of a PDF is at %s', (text, seconds) => {
  expect(secondsOfPdfDate(text)).toBe(seconds);
});
