import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BadParameter } from '../../../src/errors.ts';
import { json, NOW } from '../../support/upstream/names.ts';
import { ask, useNames } from '../../support/upstream/names-endpoints.ts';

// However long a busy machine takes: no source is too late for an optional part.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const world = useNames();
type Rates = {
  base: string;
  date: string;
  rates: Record<string, string>;
  series: { date: string; rates: Record<string, string> }[] | null;
  note: string;
  missing: { field: string; reason: string }[];
  source: { url: string };
};
const rates = (query: Record<string, string> = {}) => ask<Rates>(world(), '/currency/rates', query);

test('against the dollar by default: every currency but the base, with ten significant digits', async () => {
  expect(await rates()).toEqual({
    base: 'USD',
    date: '2026-11-19',
    rates: { EUR: '0.8', GBP: '0.64', IDR: '16000', JPY: '150' },
    previousDate: '2026-11-18',
    // 1.24 / 1.25, 0.64 × 1.24 / 0.81, 16000 × 1.24 / 19990.5, 150 × 1.24 / 186.1
    changePercent: { EUR: '-0.8', GBP: '-2.0247', IDR: '-0.7529', JPY: '-0.0537' },
    series: null,
    note: expect.stringContaining('not an executed price'),
    missing: [],
    source: {
      name: 'European Central Bank',
      url: `${world().urls.ecb}/eurofxref-daily.xml`,
      retrievedAt: NOW / 1000,
      licence: expect.stringContaining('ECB'),
    },
    sources: [
      expect.objectContaining({ url: `${world().urls.ecb}/eurofxref-daily.xml` }),
      expect.objectContaining({ url: `${world().urls.ecb}/eurofxref-hist-90d.xml` }),
    ],
  });
});

describe('what was before', () => {
  test('a series ends with the fixing and has every fixing of its days, oldest first', async () => {
    const { series } = await rates({ base: 'EUR', symbols: 'USD,GBP', days: '7' });
    expect(series).toEqual([
      { date: '2026-11-13', rates: { GBP: '0.82', USD: '1.2' } },
      { date: '2026-11-18', rates: { GBP: '0.81', USD: '1.24' } },
      { date: '2026-11-19', rates: { GBP: '0.8', USD: '1.25' } },
    ]);
    expect((await rates({ base: 'EUR', symbols: 'USD', days: '6' })).series).toHaveLength(2);
    expect((await rates({ base: 'EUR', symbols: 'USD', days: '1' })).series).toEqual([
      { date: '2026-11-19', rates: { USD: '1.25' } },
    ]);
  });

  test('a long series, and one of long ago, come from the whole history', async () => {
    const { series } = await rates({ base: 'EUR', symbols: 'USD', days: '90' });
    expect(series?.map(({ date }) => date)).toEqual(['2026-08-24', '2026-11-13', '2026-11-18', '2026-11-19']);
    const old = await rates({ base: 'EUR', symbols: 'HRK,USD', date: '2022-12-30', days: '30' });
    expect(old.series).toEqual([{ date: '2022-12-30', rates: { HRK: '7.5365', USD: '1.0666' } }]);
    expect(world().requests.filter((path) => path.endsWith('.zip'))).toHaveLength(1);
  });

  test('a currency that was not quoted before has no change, and is left out of those days', async () => {
    world().time.nowMs = Date.parse('2026-01-02T12:00:00Z');
    const { series, ...reply } = await rates({ base: 'EUR', symbols: 'BGN', date: '2026-01-01', days: '10' });
    expect(reply).toMatchObject({ changePercent: { BGN: '0' }, previousDate: '2025-12-24' });
    expect(series).toHaveLength(2);
    expect(await rates({ base: 'EUR', symbols: 'USD', date: '1999-01-04' })).toMatchObject({
      previousDate: null,
      changePercent: { USD: null },
      missing: [],
    });
  });

  test('the rates are answered when the days before cannot be read, with the reason', async () => {
    world().answers.delete('/ecb/eurofxref-hist-90d.xml');
    world().answers.delete('/frankfurter/v1');
    const reply = await rates({ symbols: 'EUR', days: '7' });
    expect(reply).toMatchObject({
      rates: { EUR: '0.8' },
      previousDate: null,
      changePercent: { EUR: null },
      series: null,
      missing: ['previousDate', 'changePercent', 'series'].map((field) => ({
        field,
        reason: expect.stringMatching(/^reference rates: ECB: .*; Frankfurter: /),
      })),
      sources: [reply.source],
    });
  });

  test('Frankfurter has the days when the ECB has not', async () => {
    world().answers.delete('/ecb/eurofxref-hist-90d.xml');
    world().answers.set(
      '/frankfurter/v1/2026-11-05..2026-11-19',
      json({
        amount: 1.0,
        base: 'EUR',
        start_date: '2026-11-04',
        end_date: '2026-11-19',
        rates: { '2026-11-04': { USD: 1.1 }, '2026-11-17': { USD: 1.2 }, '2026-11-19': { USD: 1.25 } },
      }),
    );
    expect(await rates({ base: 'EUR', symbols: 'USD', days: '10' })).toMatchObject({
      previousDate: '2026-11-17',
      changePercent: { USD: '4.1667' },
      series: [
        { date: '2026-11-17', rates: { USD: '1.2' } },
        { date: '2026-11-19', rates: { USD: '1.25' } },
      ],
      sources: [{}, { name: 'European Central Bank, through Frankfurter' }],
    });
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

  test('a fixing that is more than four working days older than the day is flagged', async () => {
    // A Thursday's fixing. The fourth working day after it is a Wednesday.
    for (const day of ['2026-11-20', '2026-11-25']) {
      world().time.nowMs = Date.parse(`${day}T12:00:00Z`);
      expect((await rates()).missing).toEqual([]);
    }
    world().time.nowMs = Date.parse('2026-11-26T12:00:00Z');
    const late = [{ field: 'date', reason: expect.stringContaining('is of 2026-11-19, 5 working days before') }];
    expect(await rates()).toMatchObject({ date: '2026-11-19', missing: late });
    const converted = ask<Rates>(world(), '/currency/convert', { from: 'EUR', to: 'USD', amount: '1' });
    expect(await converted).toMatchObject({ date: '2026-11-19', missing: late });
    expect((await rates({ date: '2026-11-20' })).missing).toEqual([]);
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
  [{ days: '91' }, 'days: a whole number from 0 to 90'],
  [{ days: '-1' }, 'days: a whole number from 0 to 90'],
  [{ quotes: 'EUR' }, 'quotes: no such parameter'],
])('%o is refused before any source is asked', async (query, message) => {
  const failure = await rates(query as Record<string, string>).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(BadParameter);
  expect(String(failure)).toContain(message);
  expect(world().requests).toEqual([]);
});
