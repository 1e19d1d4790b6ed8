import { expect, test } from 'vitest';
import { secondsOf } from '../../../src/lib/clock.ts';

test.each([
  ['2019-03-26T17:51:34.422Z', 1553622694],
  ['2024-11-06T22:37:09.220617Z', 1730932629],
  ['2020-08-13T16:53:54Z', 1597337634],
  ['2020-08-13T18:53:54+02:00', 1597337634],
  ['2020-08-13', null],
  ['2020-13-13T16:53:54Z', null],
  ['1960-01-01T00:00:00Z', null],
  ['<RFC3339 date>', null],
  [1597337634, null],
  [undefined, null],
])('%o', (text, seconds) => {
  expect(secondsOf(text)).toBe(seconds);
});
