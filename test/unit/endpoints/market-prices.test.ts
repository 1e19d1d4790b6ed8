import { beforeEach, describe, expect, test } from 'vitest';
import { percentOf } from '../../../src/endpoints/fields.ts';
import { marketPrices } from '../../../src/endpoints/market-prices.ts';
import { account, putCoverage, putTrades } from '../../support/chain/chain-rows.ts';
import { EURC, PROVENANCE, UNTIL, useCollected } from './collected-fixture.ts';
import { run, USDC } from './fixture.ts';

const given = useCollected();
const E9 = 1_000_000_000n;
const DAY = 86_400;

interface Pair {
  last: { rate: string; at: number } | null;
  ageSeconds: number | null;
  trades1h: number;
  complete1h: boolean;
  change24hPercent: string | null;
  change24h: string | null;
}
const pairs = async () => (await run(marketPrices, given().sources)).pairs as [Pair, Pair];
const change = async () => (await pairs())[0].change24hPercent;

const UNKNOWN = {
  last: null,
  ageSeconds: null,
  vwap1h: null,
  low1h: null,
  high1h: null,
  trades1h: 0,
  volumeUsdc1h: '0',
  rateUnit: 'USDC/cirBTC',
  change24hPercent: null,
  change24h: null,
};

/** A trade of one token at a rate in thousandths. */
const trade = (block: number, at: number, milliRate: number, excluded: string | null = null) => ({
  block,
  at,
  baseE9: E9,
  usdcE9: (E9 * BigInt(milliRate)) / 1000n,
  excluded,
});

test('every watched token, exact: the last trade, the hour, the change of a day', async () => {
  const { db } = given();
  putCoverage(db, 'logs', [[1, 1000]]);
  putTrades(db, [
    trade(10, UNTIL - DAY - 1, 1200),
    trade(20, UNTIL - DAY, 1250),
    trade(21, UNTIL - DAY + 1, 9999),
    trade(800, UNTIL - 3600, 9000),
    { block: 900, at: UNTIL - 3599, baseE9: 100n * E9, usdcE9: 116n * E9 },
    { block: 950, at: UNTIL - 60, baseE9: 2000n * E9, usdcE9: 2340n * E9 },
    { block: 960, at: UNTIL - 50, baseE9: 50n * E9, usdcE9: (117n * E9) / 2n },
    trade(970, UNTIL - 40, 500_000, 'outlier'),
    { ...trade(980, UNTIL - 30, 2000), token: account(0xbb) },
  ]);
  expect(await run(marketPrices, given().sources)).toEqual({
    pairs: [
      {
        symbol: 'EURC',
        token: EURC,
        last: { rate: '1.17', at: UNTIL - 50 },
        ageSeconds: 50,
        // 2514.5 / 2150 = 1.169534883720…
        vwap1h: '1.16953488',
        low1h: '1.16',
        high1h: '1.17',
        trades1h: 3,
        volumeUsdc1h: '2514.5',
        complete1h: true,
        // 1.17 / 1.25 - 1
        rateUnit: 'USDC/EURC',
        change24hPercent: '-6.4',
        change24h: '-6.4',
      },
      { symbol: 'cirBTC', token: USDC, ...UNKNOWN, complete1h: true },
    ],
    ...PROVENANCE,
  });
});

test('hour and day end with the collected data; the age is by the clock', async () => {
  putCoverage(given().db, 'logs', [[1, 1000]]);
  putTrades(given().db, [trade(10, UNTIL - DAY, 1000), trade(900, UNTIL - 10, 1100)]);
  given().nowMs += 7_200_000;
  expect((await pairs())[0]).toMatchObject({ ageSeconds: 7210, trades1h: 1, change24h: '10' });
});

test('a clock behind the chain gives no negative age', async () => {
  putTrades(given().db, [trade(900, UNTIL, 1100)]);
  given().nowMs -= 60_000;
  expect((await pairs())[0].ageSeconds).toBe(0);
});

describe('change over 24 hours', () => {
  beforeEach(() => putCoverage(given().db, 'logs', [[100, 1000]]));

  test('a token without a trade for a day has not moved', async () => {
    putTrades(given().db, [trade(150, UNTIL - 2 * DAY, 1250)]);
    expect(await change()).toBe('0');
  });

  test('without a trade of a day ago it is unknown', async () => {
    putTrades(given().db, [trade(150, UNTIL - DAY + 1, 1000), trade(900, UNTIL, 2000)]);
    expect(await change()).toBeNull();
  });

  test('an outlier or dust trade of a day ago does not count', async () => {
    putTrades(given().db, [trade(150, UNTIL - DAY, 1000, 'outlier'), trade(900, UNTIL, 2000)]);
    expect(await change()).toBeNull();
  });

  test.each([
    ['was searched', [[100, 1000]], '100'],
    ['was searched from that trade on', [[150, 1000]], '100'],
    [
      'has a gap behind that trade, which may hide a newer one',
      [
        [1, 150],
        [152, 1000],
      ],
      null,
    ],
    ['was never searched', [], null],
  ] as [string, [number, number][], string | null][])('when the chain %s', async (_what, spans, expected) => {
    putCoverage(given().db, 'logs', spans);
    putTrades(given().db, [trade(150, UNTIL - DAY, 1000), trade(900, UNTIL, 2000)]);
    expect(await change()).toBe(expected);
  });

  test('rates are compared as fractions, without rounding first', async () => {
    putTrades(given().db, [
      { block: 150, at: UNTIL - DAY, baseE9: 3n, usdcE9: 1n },
      { block: 900, at: UNTIL, baseE9: 300_000_000n, usdcE9: 100_000_100n },
    ]);
    // 0.33333366… / 0.33333333… - 1 is a millionth.
    expect(await change()).toBe('0.0001');
  });
});

test.each([
  [1n, 3n, '33.3333'],
  [-1n, 3n, '-33.3333'],
  [2n, 3n, '66.6667'],
  [1n, 2_000_000n, '0.0001'],
  [-1n, 2_000_000n, '-0.0001'],
  [1n, 2_000_001n, '0'],
  [-1n, 2_000_001n, '0'],
  [0n, 7n, '0'],
  [700n, 7n, '10000'],
])('%i of %i is %s percent', (part, whole, percent) => {
  expect(percentOf(part, whole)).toBe(percent);
});

test('a service that watches no token has nothing to sell: 503', async () => {
  const collected = { ...given().sources.collected, watched: [] };
  const refused = run(marketPrices, { ...given().sources, collected });
  await expect(refused).rejects.toMatchObject({ status: 503, code: 'market_unavailable', charged: false });
});
