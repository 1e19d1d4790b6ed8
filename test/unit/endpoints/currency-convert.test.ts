import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BadParameter } from '../../../src/errors.ts';
import { ask, useNames } from '../../support/upstream/names-endpoints.ts';

// However long a busy machine takes: no source is too late for an optional part.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const world = useNames();
type Converted = Record<'from' | 'to' | 'amount' | 'rate' | 'result' | 'date' | 'note', string>;
const convert = (query: Record<string, string>) => ask<Converted>(world(), '/currency/convert', query);

test('an amount at the newest rate', async () => {
  expect(await convert({ from: 'usd', to: 'JPY', amount: '012.50' })).toEqual({
    from: 'USD',
    to: 'JPY',
    amount: '12.5',
    rate: '150',
    result: '1875',
    date: '2026-11-19',
    previousDate: '2026-11-18',
    changePercent: '-0.0537',
    series: null,
    missing: [],
    note: expect.stringContaining('not an executed price'),
    source: expect.objectContaining({ name: 'European Central Bank' }),
    sources: [expect.any(Object), expect.any(Object)],
  });
});

test('the rate of each fixing of the days before', async () => {
  expect(await convert({ from: 'EUR', to: 'USD', amount: '1', days: '7' })).toMatchObject({
    series: [
      { date: '2026-11-13', rate: '1.2' },
      { date: '2026-11-18', rate: '1.24' },
      { date: '2026-11-19', rate: '1.25' },
    ],
  });
});

test('the amount is converted when the days before cannot be read', async () => {
  world().answers.delete('/ecb/eurofxref-hist-90d.xml');
  world().answers.delete('/frankfurter/v1');
  expect(await convert({ from: 'EUR', to: 'USD', amount: '1' })).toMatchObject({
    result: '1.25',
    previousDate: null,
    changePercent: null,
    series: null,
    missing: ['previousDate', 'changePercent'].map((field) => ({ field, reason: expect.stringContaining('ECB: ') })),
  });
});

describe('digits', () => {
  test.each([
    // from, to, amount, date, rate, result
    ['EUR', 'USD', '100', '2026-11-18', '1.24', '124'],
    ['USD', 'EUR', '100', '2026-11-18', '0.8064516129', '80.6452'],
    ['USD', 'EUR', '0.01', '2026-11-18', '0.8064516129', '0.00806452'],
    ['IDR', 'EUR', '0.01', '2026-11-18', '0.00005002376129', '0.000000500238'],
    ['JPY', 'IDR', '999999999999999999.99999999', '2026-11-18', '107.4180548', '107418054809242342826.4374'],
    ['GBP', 'GBP', '3.10', '2026-11-18', '1', '3.1'],
    ['EUR', 'EUR', '0.00000001', '2026-11-18', '1', '0.00000001'],
    ['USD', 'EUR', '0', '2026-11-18', '0.8064516129', '0'],
    ['USD', 'EUR', '0.00', '2026-11-18', '0.8064516129', '0'],
  ])('%s to %s: %s on %s', async (from, to, amount, date, rate, result) => {
    expect(await convert({ from, to, amount, date })).toMatchObject({ rate, result, date });
  });
});

test('the day before a holiday is named', async () => {
  expect((await convert({ from: 'EUR', to: 'BGN', amount: '1', date: '2026-01-01' })).date).toBe('2025-12-31');
});

test('codes that are not quoted are 400', async () => {
  await expect(convert({ from: 'BTC', to: 'EUR', amount: '1' })).rejects.toThrow('from: BTC has no reference rate');
  await expect(convert({ from: 'EUR', to: 'HRK', amount: '1' })).rejects.toThrow('to: HRK has no reference rate');
});

test.each([
  ['', 'amount'],
  ['-1', 'amount'],
  ['+1', 'amount'],
  ['1e3', 'amount'],
  ['1,000', 'amount'],
  ['.5', 'amount'],
  ['5.', 'amount'],
  ['0x10', 'amount'],
  ['NaN', 'amount'],
  ['1234567890123456789', 'amount'],
  ['1.123456789', 'amount'],
  [' 1', 'amount'],
])('the amount %o is refused', async (amount) => {
  const failure = await convert({ from: 'EUR', to: 'USD', amount }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(BadParameter);
  expect(String(failure)).toContain('amount: a decimal number');
  expect(world().requests).toEqual([]);
});

test('from, to and amount are required', async () => {
  const failure = await convert({}).catch((error: unknown) => error);
  expect((failure as BadParameter).errors?.map(({ path }) => path)).toEqual(['from', 'to', 'amount']);
});
