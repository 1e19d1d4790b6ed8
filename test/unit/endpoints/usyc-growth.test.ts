import { describe, expect, test } from 'vitest';
import type { Rounds } from '../../../src/chain/oracle.ts';
import { annualisedGrowth } from '../../../src/endpoints/chain/usyc.ts';

const NOW = 1_795_200_000;
const DAY = 86_400;

/** Rounds by days before the newest and price in 10^-4, newest first. */
const published = (...prices: readonly (readonly [days: number, price: number])[]) =>
  prices.map(([days, price], at) => ({
    id: BigInt(prices.length - at),
    answer: BigInt(price) * 10n ** 14n,
    at: NOW - Math.round(days * DAY),
  })) as unknown as Rounds;
/** Percent with at most four decimals, as JavaScript formats it. */
const percent = (times: number) => String(Number(((times - 1) * 100).toFixed(4)));

describe('annualisedGrowth', () => {
  test.each<[string, Rounds, number, string | null]>([
    [
      'exactly so many days',
      published([0, 10_010], [3, 10_005], [7, 10_000], [30, 9000]),
      7,
      percent(1.001 ** (365 / 7)),
    ],
    ['more days', published([0, 10_010], [7, 10_000], [30, 9970]), 30, percent((1.001 / 0.997) ** (365 / 30))],
    // A weekend: the days between the rounds count, not the requested ones.
    ['the round before', published([0, 10_010], [6, 10_007], [9, 10_000]), 7, percent(1.001 ** (365 / 9))],
    ['a standstill', published([0, 10_000], [20, 10_000]), 7, '0'],
    ['a fall', published([0, 10_000], [7, 10_010]), 7, percent((1 / 1.001) ** (365 / 7))],
    ['a year', published([0, 10_340], [365, 10_000]), 30, '3.4'],
    ['a second too few', published([0, 10_010], [7 - 1 / DAY, 10_000]), 7, null],
    ['a single round', published([0, 10_000]), 7, null],
    ['more than a number holds', published([0, 10 ** 15], [7, 1]), 7, null],
  ])('%s', (_what, rounds, days, expected) => {
    expect(annualisedGrowth(rounds, days)).toBe(expected);
  });
});
