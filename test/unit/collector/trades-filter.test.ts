import { describe, expect, test } from 'vitest';
import { type Candidate, judgeTrades, WINDOW } from '../../../src/collector/trade-filter.ts';

const RULES = { dustE9: 1_000_000_000n, outlierPercent: 20 };
let next = 0;
const at = (price: number, usdc = 100, transactionHash = `0x${(next++).toString(16)}`): Candidate => ({
  price,
  usdcE9: BigInt(Math.round(usdc * 1e9)),
  transactionHash,
});
const steady = (count: number, price = 1.16) => Array.from({ length: count }, () => at(price));
const judge = (trades: Candidate[], before: Candidate[] = [], after: Candidate[] = []) =>
  judgeTrades(trades, before, after, RULES);

test('dust is below the least amount, not at it, and does not vote', () => {
  expect(judge([at(1.16, 0.999999999), at(1.16, 1)])).toEqual(['dust', null]);
  const dust = Array.from({ length: 30 }, () => at(5, 0.5));
  expect(judge([...dust, at(5)], steady(3)).at(-1)).toBe('outlier');
});

describe('an outlier', () => {
  test('is further than the limit from the median, above or below; at the limit it counts', () => {
    const before = steady(WINDOW, 1);
    expect(judge([at(1.2), at(1.2001), at(1 / 1.2), at(0.833)], before)).toEqual([null, 'outlier', null, 'outlier']);
    expect(judge([at(100)], before)).toEqual(['outlier']);
    expect(judge([at(0.01)], before)).toEqual(['outlier']);
  });

  test('does not carry the median with it: a few absurd ones are all refused', () => {
    const absurd = Array.from({ length: 10 }, () => at(9));
    const verdicts = judge([...absurd, at(1.17)], steady(WINDOW));
    expect(verdicts).toEqual([...absurd.map(() => 'outlier'), null]);
  });

  test('may not vouch for itself: one transaction has one vote, and none about its own trades', () => {
    const wash = Array.from({ length: 200 }, () => at(9, 100, '0xwash'));
    expect(new Set(judge([...wash, at(1.17)], steady(WINDOW)).slice(0, -1))).toEqual(new Set(['outlier']));
    expect(judge([...wash, at(1.17)], steady(WINDOW)).at(-1)).toBeNull();
    const own = [at(9, 100, '0xown'), at(9, 100, '0xown')];
    expect(judge([...own, ...steady(2)]).slice(0, 2), 'two others, and itself, prove nothing').toEqual([null, null]);
    expect(judge([...own, ...steady(3)]).slice(0, 2)).toEqual(['outlier', 'outlier']);
  });

  test('the vote of a transaction with several trades is the nearest of them', () => {
    const before = ['0xa', '0xb', '0xc'].flatMap((hash) => [at(1, 100, hash), at(9, 100, hash)]);
    expect(judge([at(1), at(9)], before)).toEqual([null, 'outlier']);
  });

  test('the nearest trades are asked, not the oldest', () => {
    expect(judge([at(2)], [...steady(WINDOW, 2), ...steady(3 * WINDOW, 1)])).toEqual([null]);
    expect(judge([at(2)], [...steady(WINDOW, 1), ...steady(3 * WINDOW, 2)])).toEqual(['outlier']);
  });

  test('a jump of the price that lasts is followed after half a window', () => {
    const verdicts = judge(steady(WINDOW, 2), steady(WINDOW, 1));
    expect(verdicts.indexOf(null)).toBe(Math.ceil(WINDOW / 2));
    expect(verdicts.slice(Math.ceil(WINDOW / 2))).toEqual(Array(WINDOW - Math.ceil(WINDOW / 2)).fill(null));
  });
});

describe('at the start, where nothing was before', () => {
  test('the trades after judge the first', () => {
    expect(judge([at(50), ...steady(5)])).toEqual(['outlier', null, null, null, null, null]);
    expect(judge([at(50)], [], steady(5))).toEqual(['outlier']);
    expect(judge([at(1.2)], [], steady(5))).toEqual([null]);
  });

  test('fewer than three others prove nothing', () => {
    expect(judge([at(50), at(1.16)])).toEqual([null, null]);
    expect(judge([at(50), ...steady(2)])[0]).toBeNull();
    expect(judge([at(50), ...steady(3)])[0]).toBe('outlier');
  });

  test('what came before is asked before what came after', () => {
    expect(judge([at(2)], steady(WINDOW, 1), steady(WINDOW, 2))).toEqual(['outlier']);
    expect(judge([at(2)], steady(3, 1), steady(WINDOW, 2))).toEqual([null]);
  });
});

test('a span judged in parts, each after the one before, gets the verdicts of the whole', () => {
  const before = steady(3 * WINDOW);
  const trades = Array.from({ length: 120 }, (_, index) => at(index % 17 === 0 ? 7 : 1.1 + (index % 10) / 100));
  const whole = judge(trades, before.toReversed());
  const parts: (string | null)[] = [];
  for (let from = 0; from < trades.length; from += 7) {
    const known = [...before, ...trades.slice(0, from)];
    parts.push(...judge(trades.slice(from, from + 7), known.toReversed()));
  }
  expect(parts).toEqual(whole);
  expect(whole.filter((verdict) => verdict === 'outlier')).toHaveLength(8);
});
