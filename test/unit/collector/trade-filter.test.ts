import { describe, expect, test } from 'vitest';
import { type Candidate, filterTrades, WINDOW } from '../../../src/collector/trades.ts';

const RULES = { dustE9: 1_000_000_000n, outlierPercent: 20 };
let next = 0;
const at = (price: number, usdc = 100, transactionHash = `0x${(next++).toString(16)}`): Candidate => ({
  price,
  usdcE9: BigInt(Math.round(usdc * 1e9)),
  transactionHash,
});
const steady = (count: number, price = 1.16) => Array.from({ length: count }, () => at(price));
const filter = (trades: Candidate[], before: Candidate[] = [], after: Candidate[] = []) =>
  filterTrades(trades, before, after, RULES);

test('a trade below the limit is dust and has no vote; a trade at the limit is none', () => {
  expect(filter([at(1.16, 0.999999999), at(1.16, 1)])).toEqual(['dust', null]);
  const dust = Array.from({ length: 30 }, () => at(5, 0.5));
  expect(filter([...dust, at(5)], steady(3)).at(-1)).toBe('outlier');
});

describe('an outlier', () => {
  test('is further than the limit from the median, above or below; a trade at the limit counts', () => {
    const before = steady(WINDOW, 1);
    expect(filter([at(1.2), at(1.2001), at(1 / 1.2), at(0.833)], before)).toEqual([null, 'outlier', null, 'outlier']);
    expect(filter([at(100)], before)).toEqual(['outlier']);
    expect(filter([at(0.01)], before)).toEqual(['outlier']);
  });

  test('does not move the median: a few absurd trades are all refused', () => {
    const absurd = Array.from({ length: 10 }, () => at(9));
    const verdicts = filter([...absurd, at(1.17)], steady(WINDOW));
    expect(verdicts).toEqual([...absurd.map(() => 'outlier'), null]);
  });

  test('does not count as its own evidence: a transaction has one vote, and none about its own trades', () => {
    const wash = Array.from({ length: 200 }, () => at(9, 100, '0xwash'));
    expect(new Set(filter([...wash, at(1.17)], steady(WINDOW)).slice(0, -1))).toEqual(new Set(['outlier']));
    expect(filter([...wash, at(1.17)], steady(WINDOW)).at(-1)).toBeNull();
    const own = [at(9, 100, '0xown'), at(9, 100, '0xown')];
    expect(filter([...own, ...steady(2)]).slice(0, 2), 'two other transactions are too few').toEqual([null, null]);
    expect(filter([...own, ...steady(3)]).slice(0, 2)).toEqual(['outlier', 'outlier']);
  });

  test('the vote of a transaction with several trades is its nearest trade', () => {
    const before = ['0xa', '0xb', '0xc'].flatMap((hash) => [at(1, 100, hash), at(9, 100, hash)]);
    expect(filter([at(1), at(9)], before)).toEqual([null, 'outlier']);
  });

  test('the nearest trades are compared, not the oldest', () => {
    expect(filter([at(2)], [...steady(WINDOW, 2), ...steady(3 * WINDOW, 1)])).toEqual([null]);
    expect(filter([at(2)], [...steady(WINDOW, 1), ...steady(3 * WINDOW, 2)])).toEqual(['outlier']);
  });

  test('a lasting jump of the price is accepted after half a window', () => {
    const verdicts = filter(steady(WINDOW, 2), steady(WINDOW, 1));
    expect(verdicts.indexOf(null)).toBe(Math.ceil(WINDOW / 2));
    expect(verdicts.slice(Math.ceil(WINDOW / 2))).toEqual(Array(WINDOW - Math.ceil(WINDOW / 2)).fill(null));
  });
});

describe('at the start, when no trade came before', () => {
  test('the first trades are compared with the trades after them', () => {
    expect(filter([at(50), ...steady(5)])).toEqual(['outlier', null, null, null, null, null]);
    expect(filter([at(50)], [], steady(5))).toEqual(['outlier']);
    expect(filter([at(1.2)], [], steady(5))).toEqual([null]);
  });

  test('with fewer than three others every trade counts', () => {
    expect(filter([at(50), at(1.16)])).toEqual([null, null]);
    expect(filter([at(50), ...steady(2)])[0]).toBeNull();
    expect(filter([at(50), ...steady(3)])[0]).toBe('outlier');
  });

  test('trades before are used before trades after', () => {
    expect(filter([at(2)], steady(WINDOW, 1), steady(WINDOW, 2))).toEqual(['outlier']);
    expect(filter([at(2)], steady(3, 1), steady(WINDOW, 2))).toEqual([null]);
  });
});

test('a span that is filtered in consecutive parts gets the verdicts of the whole span', () => {
  const before = steady(3 * WINDOW);
  const trades = Array.from({ length: 120 }, (_, index) => at(index % 17 === 0 ? 7 : 1.1 + (index % 10) / 100));
  const whole = filter(trades, before.toReversed());
  const parts: (string | null)[] = [];
  for (let from = 0; from < trades.length; from += 7) {
    const known = [...before, ...trades.slice(0, from)];
    parts.push(...filter(trades.slice(from, from + 7), known.toReversed()));
  }
  expect(parts).toEqual(whole);
  expect(whole.filter((verdict) => verdict === 'outlier')).toHaveLength(8);
});
