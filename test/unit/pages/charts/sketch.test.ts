import { expect, test } from 'vitest';
import { markupOf } from '../../../../src/pages/html.ts';
import { sketch } from '../../../../src/pages/live.ts';

const series = (values: (string | null)[]) => ({
  labels: ['a'],
  rows: values.map((value, index) => ({ at: index * 10, values: [value] })),
});
const paths = (values: (string | null)[]) =>
  [...markupOf(sketch(series(values), 'lines')).matchAll(/ d="([^"]*)"/g)].map(([, path]) => path);

test('the sketch is a line from the first moment to the last, the highest value on top', () => {
  expect(paths(['1', '3', '2'])).toEqual(['M0 148L300 12L600 80']);
});

test('a missing value is a gap, not a zero', () => {
  expect(paths(['1', null, '1', '1'])).toEqual(['M0 80M400 80L600 80']);
});

test('one value, or equal values, are drawn in the middle', () => {
  expect(paths(['5'])).toEqual(['M300 80']);
  expect(paths(['5', '5'])).toEqual(['M0 80L600 80']);
});

test('there is no sketch without values', () => {
  expect(sketch(series([]), 'lines')).toBeNull();
  expect(sketch(series([null]), 'band')).toBeNull();
});
