import { expect, test } from 'vitest';
import { countOf, percentileOf, percentilesIn } from '../../../src/lib/percentile.ts';

const histogramOf = (values: readonly bigint[]) => {
  const counts = new Map<bigint, number>();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return counts;
};

test('percentiles are values that occurred, by nearest rank', () => {
  const values = histogramOf([50n, 15n, 40n, 20n, 35n]);
  expect(percentilesIn(values, [0, 5, 30, 40, 50, 100])).toEqual([15n, 15n, 20n, 20n, 35n, 50n]);
  expect(percentilesIn(histogramOf([2n ** 200n, 1n]), [100])).toEqual([2n ** 200n]);
  expect(percentilesIn(histogramOf([]), [50])).toBeNull();
});

test('a histogram has the percentiles of the values that it counts', () => {
  const values = Array.from({ length: 997 }, (_, at) => BigInt((at * at * 31) % 101));
  const sorted = [...values].sort((a, b) => Number(a - b));
  const percents = [1, 5, 50, 95, 99];
  expect(countOf(histogramOf(values))).toBe(997);
  expect(percentilesIn(histogramOf(values), percents)).toEqual(
    percents.map((percent) => sorted[Math.ceil((percent * 997) / 100) - 1]),
  );
});

test('plain numbers', () => {
  expect([50, 95, 100].map((percent) => percentileOf([3, 1, 2, 4], percent))).toEqual([2, 4, 4]);
  expect(percentileOf([], 50)).toBeNull();
});
