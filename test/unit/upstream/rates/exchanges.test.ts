import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { startExchanges } from '../../../../dev/lightning/lightning.ts';
import { Unavailable } from '../../../../src/errors.ts';
import { createUpstreams, type Upstreams } from '../../../../src/upstream/client/client.ts';
import { createRateSource } from '../../../../src/upstream/rates/bitcoin.ts';
import { PATIENT_MS } from '../../../support/upstream/patience.ts';
import {
  type ExchangeKey,
  KEYS,
  NOW,
  PATHS,
  type Rates,
  startRates,
  TICKERS,
} from '../../../support/upstream/rates.ts';

let rates: Rates;
beforeEach(async () => {
  rates = await startRates();
});
afterEach(() => rates.stop());

const current = () => rates.source.current();
/** The default answers of the three exchanges. */
const GOOD = ['85000.00', '85100', '85050.5'];
const unavailable = { status: 503, code: 'btc_rate_unavailable', charged: false, retryAfterSeconds: 5 };

test('the median of three, with each exchange’s own price and the time of reading', async () => {
  rates.quote(GOOD);
  const rate = await current();
  expect(rate).toEqual({
    rate: '85050.5',
    exchanges: [
      { name: 'Coinbase', rate: '85000' },
      { name: 'Kraken', rate: '85100' },
      { name: 'Bitstamp', rate: '85050.5' },
    ],
    retrievedAtMs: NOW,
  });
});

test('each is asked where it documents, with our name, and no more than once for many callers', async () => {
  rates.quote(GOOD);
  const all = await Promise.all([current(), current(), current()]);
  expect(new Set(all).size).toBe(1);
  for (const key of KEYS) {
    const { received } = rates.servers[key];
    expect(received.map(({ method, url }) => [method, url])).toEqual([['GET', PATHS[key]]]);
    expect(received[0]?.headers['user-agent']).toContain('percall');
  }
});

describe('which answers are enough', () => {
  test.each([
    ['one outlier among three', ['85000', '85100', '170000'], '85100'],
    ['two that agree', ['85000', null, '85001'], '85000.5'],
    ['two, 2 % apart', ['100000', '102000', null], '101000'],
  ])('%s', async (_what, prices, rate) => {
    rates.quote(prices);
    expect((await current()).rate).toBe(rate);
    expect((await current()).exchanges).toHaveLength(prices.filter((price) => price !== null).length);
  });

  test.each([
    ['two, further apart', ['100000', null, '102000.01'], /Kraken: answered HTTP 500; .*more than 2 % apart/],
    ['one', [null, null, '85000'], /Coinbase: answered HTTP 500; Kraken: answered HTTP 500\)/],
    ['none', [null, null, null], /Bitstamp: answered HTTP 500/],
  ])('not enough: %s', async (_what, prices, detail) => {
    rates.quote(prices);
    const refused = await current().catch((error: unknown) => error);
    expect(refused).toBeInstanceOf(Unavailable);
    expect(refused).toMatchObject(unavailable);
    expect((refused as Error).message).toMatch(detail);
    expect((refused as Error).message).not.toMatch(/127\.0\.0\.1|https?:/);
  });
});

describe('time', () => {
  test('a rate is kept for 60 s and not a moment longer', async () => {
    rates.quote(GOOD);
    await current();
    rates.quote(['90000', '90000', '90000']);
    rates.time.nowMs = NOW + 59_999;
    expect((await current()).rate).toBe('85050.5');
    expect(rates.asked()).toEqual([1, 1, 1]);
    rates.time.nowMs = NOW + 60_000;
    // The tickers’ own times are a minute older now, which is still of now.
    expect((await current()).rate).toBe('90000');
    expect(rates.asked()).toEqual([2, 2, 2]);
  });

  test('an expired rate prices nothing', async () => {
    rates.quote(GOOD);
    await current();
    rates.quote([null, null, null]);
    rates.time.nowMs = NOW + 60_000;
    await expect(current()).rejects.toMatchObject(unavailable);
  });

  test('after a failure the exchanges are not asked for 5 s', async () => {
    rates.quote([null, null, '85000']);
    await expect(current()).rejects.toMatchObject(unavailable);
    rates.quote(GOOD);
    rates.time.nowMs = NOW + 4999;
    await expect(current()).rejects.toMatchObject(unavailable);
    expect(rates.asked()).toEqual([1, 1, 1]);
    rates.time.nowMs = NOW + 5000;
    expect((await current()).rate).toBe('85050.5');
  });

  test('a clock that was set back keeps neither a rate nor a failure', async () => {
    rates.quote(GOOD);
    await current();
    rates.time.nowMs = NOW - 1;
    rates.quote([null, null, null]);
    await expect(current()).rejects.toMatchObject(unavailable);
    rates.time.nowMs = NOW - 2;
    rates.quote(GOOD);
    expect((await current()).rate).toBe('85050.5');
  });
});

describe('what is no price does not count', () => {
  /** The exchange is left out: the rate is the mean of the other two, of which one is 0.2 % away. */
  async function isLeftOut(key: ExchangeKey, body: unknown): Promise<boolean> {
    rates.quote(GOOD);
    rates.answer(key, { body: JSON.stringify(body) });
    return !(await current()).exchanges.some(({ name }) => name.toLowerCase() === key);
  }

  const PRICES = [
    '0',
    '0.00',
    '-85000',
    '99.99',
    '100000001',
    '1e5',
    'NaN',
    '',
    '85,000',
    `85000.${'0'.repeat(30)}`,
    85000,
    null,
  ];
  test.each(KEYS.flatMap((key) => PRICES.map((price) => [key, price] as const)))('%s: %o', async (key, price) => {
    expect(await isLeftOut(key, TICKERS[key](price))).toBe(true);
  });

  test.each(KEYS.flatMap((key) => ['100', '100000000', '85000.00000000'].map((price) => [key, price] as const)))(
    '%s: %s does',
    async (key, price) => {
      expect(await isLeftOut(key, TICKERS[key](price))).toBe(false);
    },
  );

  test.each<[ExchangeKey, string, unknown, boolean]>([
    ['kraken', 'an error with HTTP 200', { error: ['EGeneral:Too many requests'] }, true],
    ['kraken', 'an error beside a result', { ...TICKERS.kraken('85000'), error: ['EService:Unavailable'] }, true],
    ['kraken', 'no pair', { error: [], result: {} }, true],
    ['kraken', 'another currency', { error: [], result: { XXBTZEUR: { c: ['85000', '1'] } } }, true],
    ['kraken', 'the pair by another name', { error: [], result: { 'BTC/USD': { c: ['85000', '1'] } } }, false],
    ['bitstamp', 'no time', { last: '85000' }, true],
    ['bitstamp', 'a time 10 minutes old', { last: '85000', timestamp: String(NOW / 1000 - 600) }, false],
    ['bitstamp', 'an older one', { last: '85000', timestamp: String(NOW / 1000 - 601) }, true],
    ['bitstamp', 'milliseconds', { last: '85000', timestamp: String(NOW) }, true],
    ['coinbase', 'no time', { price: '85000' }, false],
    ['coinbase', 'a time 10 minutes old', { price: '85000', time: '2026-11-20T11:50:00Z' }, false],
    ['coinbase', 'an older one', { price: '85000', time: '2026-11-20T11:49:59Z' }, true],
    ['coinbase', 'no real time', { price: '85000', time: 'yesterday' }, true],
    ['coinbase', 'its own error', { message: 'NotFound' }, true],
  ])('%s: %s (%j)', async (key, _what, body, leftOut) => {
    expect(await isLeftOut(key, body)).toBe(leftOut);
  });

  test('404 is no answer either', async () => {
    rates.quote(GOOD);
    rates.answer('coinbase', { status: 404, body: '{"message":"NotFound"}' });
    expect((await current()).exchanges.map(({ name }) => name)).toEqual(['Kraken', 'Bitstamp']);
  });
});

const SAMPLES = join(import.meta.dirname, '../../../../../shared/samples/exchanges');

describe.skipIf(!existsSync(SAMPLES))('recorded answers (skipped where ../shared is absent)', () => {
  const sample = (name: string) => ({ body: readFileSync(join(SAMPLES, `${name}.json`)) });

  test.each<[ExchangeKey, string, string, string | null]>([
    ['coinbase', 'coinbase-exchange-ticker-BTC-USD', '2026-09-07T07:26:14Z', '79540.05'],
    ['coinbase', 'coinbase-exchange-ticker-BTC-USD-june', '2026-06-19T16:44:00Z', '63212.97'],
    // Other routes of the same firm, which must not pass for the ticker.
    ['coinbase', 'coinbase-spot-BTC-USD', '2026-09-25T00:00:00Z', null],
    ['coinbase', 'coinbase-spot-BTC-USD-2026-10-05', '2026-10-05T09:37:27Z', null],
    ['coinbase', 'coinbase-advanced-product_book-BTC-USD', '2026-09-07T07:26:14Z', null],
    ['kraken', 'kraken-ticker-XBTUSD', '2026-09-25T00:00:00Z', '84036'],
    ['kraken', 'kraken-ticker-XBTUSD-2026-10-05', '2026-10-05T09:37:27Z', '85861.2'],
    ['kraken', 'kraken-ticker-XXBTZEUR-old', '2014-07-01T00:00:00Z', null],
    ['kraken', 'kraken-unknown-pair', '2026-09-09T00:00:00Z', null],
    ['kraken', 'kraken-unknown-pair-2026-10-05', '2026-10-05T05:45:09Z', null],
    ['bitstamp', 'bitstamp-ticker-btcusd', '2026-09-27T13:33:20Z', '85052.34'],
    ['bitstamp', 'bitstamp-ticker-btcusd-2026-10-05', '2026-10-05T09:37:27Z', '85864'],
    ['bitstamp', 'bitstamp-ticker-btcusd-2022', '2022-10-26T18:27:10Z', '20800'],
    // The same bytes days later: a cache’s, or a halted market’s.
    ['bitstamp', 'bitstamp-ticker-btcusd-2022', '2022-10-29T00:00:00Z', null],
    ['coinbase', 'coinbase-exchange-ticker-BTC-USD', '2026-09-08T07:26:14Z', null],
  ])('%s: %s at %s is %s', async (key, name, now, rate) => {
    rates.time.nowMs = Date.parse(now);
    rates.answer(key, sample(name));
    // A second exchange at the expected price, so that the sample is half of an agreed rate; Kraken sends no time.
    const witness = key === 'kraken' ? 'coinbase' : 'kraken';
    const price = rate ?? '85000';
    const body = witness === 'coinbase' ? { price } : TICKERS.kraken(price);
    rates.answer(witness, { body: JSON.stringify(body) });
    if (rate === null) await expect(current()).rejects.toMatchObject(unavailable);
    else expect((await current()).exchanges.find(({ name: who }) => who.toLowerCase() === key)?.rate).toBe(rate);
  });

  test('the set of one second: Kraken and Bitstamp of 2026-10-05T09:37:27Z, with a price of Coinbase between them', async () => {
    rates.time.nowMs = Date.parse('2026-10-05T09:37:27Z');
    rates.answer('kraken', sample('kraken-ticker-XBTUSD-2026-10-05'));
    rates.answer('bitstamp', sample('bitstamp-ticker-btcusd-2026-10-05'));
    rates.answer('coinbase', { body: JSON.stringify({ price: '85866.185', time: '2026-10-05T09:37:26.9Z' }) });
    expect((await current()).rate).toBe('85864');
  });
});

test('the stand-ins of the embedded network answer as the exchanges do, at the price that was set', async () => {
  const exchanges = await startExchanges({ usd: '85864.00' });
  const clock = { nowMs: () => Date.now() + rates.time.nowMs - NOW, sleep: async () => undefined };
  const upstreams = createUpstreams({ clock, userAgent: 'percall/test (+http://127.0.0.1; test@example.org)' });
  const patient: Upstreams = {
    ...upstreams,
    open: (options) => upstreams.open({ ...options, timeoutMs: PATIENT_MS }),
  };
  try {
    const source = createRateSource(clock, patient, exchanges.urls);
    const before = await source.current();
    expect([before.rate, before.exchanges.length]).toEqual(['85864', 3]);
    exchanges.set('90000.5');
    rates.time.nowMs += 60_000;
    expect((await source.current()).rate).toBe('90000.5');
  } finally {
    await upstreams.close();
    await exchanges.stop();
  }
});

test('a fault is known until a reading succeeds, and looking at it asks the exchanges once a minute', async () => {
  const asked = () => rates.servers.coinbase.received.length;
  expect(rates.source.fault()).toBeNull();
  rates.quote(['85000', null, '95000']);
  await expect(current()).rejects.toMatchObject(unavailable);
  rates.time.nowMs += 59_999;
  expect(rates.source.fault()).toMatch(/the other two exchanges are more than 2 % apart/);
  expect(asked()).toBe(1);
  rates.quote(GOOD);
  rates.time.nowMs += 1;
  for (let look = 0; look < 3; look++) expect(rates.source.fault()).not.toBeNull();
  // Joins the reading that the look began.
  expect((await current()).rate).toBe('85050.5');
  expect([rates.source.fault(), asked()]).toEqual([null, 2]);
  rates.time.nowMs += 3_600_000;
  expect([rates.source.fault(), asked()]).toEqual([null, 2]);
});
