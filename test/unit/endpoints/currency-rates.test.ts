import { describe, expect, test } from 'vitest';
import { BadParameter } from '../../../src/errors.ts';
import { NOW } from '../../support/upstream/names.ts';
import { ask, useNames } from '../../support/upstream/names-endpoints.ts';

const world = useNames();
type Rates = { base: string; date: string; rates: Record<string, string>; note: string; source: object };
const rates = (query: Record<string, string> = {}) => ask<Rates>(world(), '/currency/rates', query);

test('against the dollar by default: every currency but the base, with ten significant digits', async () => {
  expect(await rates()).toEqual({
    base: 'USD',
    date: '2026-11-19',
    rates: { EUR: '0.8', GBP: '0.64', IDR: '16000', JPY: '150' },
    note: expect.stringContaining('not an executed price'),
    source: {
      name: 'European Central Bank',
      url: `${world().urls.ecb}/eurofxref-daily.xml`,
      retrievedAt: NOW / 1000,
      licence: expect.stringContaining('ECB'),
    },
  });
});

test('against the euro: as published, without trailing zeros', async () => {
  expect((await rates({ base: 'eur' })).rates).toEqual({ GBP: '0.8', IDR: '20000', JPY: '187.5', USD: '1.25' });
});

test('cross rates are rounded half up at the tenth digit', async () => {
  const { rates: cross } = await rates({ base: 'JPY', symbols: 'usd,EUR,IDR', date: '2026-11-18' });
  // 1.24 / 186.1, 1 / 186.1, 19990.5 / 186.1
  expect(cross).toEqual({ EUR: '0.005373455132', IDR: '107.4180548', USD: '0.006663084363' });
});

test('the base is listed when it is asked for; a symbol that is named twice is listed once', async () => {
  expect((await rates({ base: 'GBP', symbols: 'GBP,GBP,USD' })).rates).toEqual({ GBP: '1', USD: '1.5625' });
});

describe('dates', () => {
  test.each([
    ['2026-11-20', '2026-11-19'],
    ['2026-11-16', '2026-11-13'],
    ['2025-12-31', '2025-12-31'],
    ['2026-01-01', '2025-12-31'],
    ['1999-01-04', '1999-01-04'],
  ])('%s gets the fixing of %s', async (date, fixing) => {
    expect((await rates({ date })).date).toBe(fixing);
  });

  test('a former currency is quoted for the days of its existence', async () => {
    expect((await rates({ base: 'BGN', symbols: 'EUR', date: '2026-01-01' })).rates).toEqual({ EUR: '0.5112997239' });
    await expect(rates({ base: 'BGN' })).rejects.toThrow('base: BGN has no reference rate of 2026-11-19');
  });

  test('today is Frankfurt’s: tomorrow is refused until it has begun there', async () => {
    await expect(rates({ date: '2026-11-21' })).rejects.toThrow(
      'date: in the future; today is 2026-11-20 in Frankfurt',
    );
    world().time.nowMs = Date.parse('2026-11-20T23:30:00Z');
    expect((await rates({ date: '2026-11-21' })).date).toBe('2026-11-19');
  });
});

test('codes that are not quoted are 400, with the list of those that are', async () => {
  const failure = await rates({ base: 'XAU', symbols: 'USD,XXX,ABC' }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(BadParameter);
  expect((failure as BadParameter).errors?.map(({ path }) => path)).toEqual(['base', 'symbols', 'symbols']);
  expect(String(failure)).toContain('XAU has no reference rate of 2026-11-19; there are EUR, GBP, IDR, JPY, USD');
});

test.each([
  [{ base: 'US' }, 'base: a three-letter currency code'],
  [{ base: '' }, 'base: a three-letter currency code'],
  [{ base: 'U$D' }, 'base: a three-letter currency code'],
  [{ symbols: '' }, 'symbols: comma-separated'],
  [{ symbols: 'EUR,,USD' }, 'symbols: comma-separated'],
  [{ symbols: 'EUR;USD' }, 'symbols: comma-separated'],
  [{ date: '2026-02-29' }, 'date: a date that exists'],
  [{ date: '20260101' }, 'date: a date that exists'],
  [{ date: '' }, 'date: a date that exists'],
  [{ date: 'latest' }, 'date: a date that exists'],
  [{ date: '1999-01-03' }, 'date: not before 1999-01-04'],
  [{ quotes: 'EUR' }, 'quotes: no such parameter'],
])('%o is refused before any source is asked', async (query, message) => {
  const failure = await rates(query as Record<string, string>).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(BadParameter);
  expect(String(failure)).toContain(message);
  expect(world().requests).toEqual([]);
});
