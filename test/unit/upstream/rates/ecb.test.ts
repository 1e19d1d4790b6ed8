import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { UpstreamFailed } from '../../../../src/errors.ts';
import { type NamesWorld, NOW, serveFixtures, startNames } from '../../../support/upstream/names.ts';

let world: NamesWorld;
beforeEach(async () => {
  world = await startNames();
  serveFixtures(world);
});
afterEach(() => world.stop());

const at = (date: string | null) => world.sources.currency.at(date);
const dateOf = async (date: string | null) => (await at(date)).fixing.date;
const asked = (file: string) => world.requests.filter((path) => path.startsWith(`/ecb/${file}`)).length;
const MINUTE = 60_000;

describe('which fixing holds', () => {
  test.each([
    [null, '2026-11-19', 'eurofxref-daily.xml'],
    ['2026-11-20', '2026-11-19', 'eurofxref-daily.xml'],
    ['2026-11-19', '2026-11-19', 'eurofxref-daily.xml'],
    ['2026-11-18', '2026-11-18', 'eurofxref-hist-90d.xml'],
    ['2026-11-15', '2026-11-13', 'eurofxref-hist-90d.xml'],
    ['2026-01-01', '2025-12-31', 'eurofxref-hist.zip'],
    ['2025-12-26', '2025-12-24', 'eurofxref-hist.zip'],
    ['1999-01-04', '1999-01-04', 'eurofxref-hist.zip'],
    ['1999-01-10', '1999-01-05', 'eurofxref-hist.zip'],
  ])('%s: that of %s, from %s', async (date, day, file) => {
    const { fixing, source, url, retrievedAtMs } = await at(date);
    expect([fixing.date, source, url, retrievedAtMs]).toEqual([
      day,
      'European Central Bank',
      `${world.urls.ecb}/${file}`,
      NOW,
    ]);
  });

  test('a day with nothing near it means that files are missing days, which is a failure', async () => {
    world.answers.delete('/frankfurter/v1');
    await expect(at('2010-06-01')).rejects.toBeInstanceOf(UpstreamFailed);
  });
});

describe('the files', () => {
  test('are read once, by many callers at once', async () => {
    await Promise.all([at(null), at(null), at('2025-12-31'), at('2025-12-31'), at('1999-01-04')]);
    await at('2025-12-24');
    expect([asked('eurofxref-daily'), asked('eurofxref-hist-90d'), asked('eurofxref-hist.zip')]).toEqual([1, 1, 1]);
  });

  test('the day’s file is read again when the next one is due, then every five minutes until it is there', async () => {
    await at(null);
    world.time.nowMs = Date.parse('2026-11-20T14:59:00Z');
    await at(null);
    expect(asked('eurofxref-daily')).toBe(1);
    world.time.nowMs = Date.parse('2026-11-20T15:01:00Z');
    expect(await dateOf(null)).toBe('2026-11-19');
    await at(null);
    expect(asked('eurofxref-daily')).toBe(2);
    const daily = world.answers.get('/ecb/eurofxref-daily.xml') as { type: string; body: Buffer };
    const newer = daily.body.toString().replace('2026-11-19', '2026-11-20');
    world.answers.set('/ecb/eurofxref-daily.xml', { ...daily, body: newer });
    world.time.nowMs += 5 * MINUTE;
    expect(await dateOf(null)).toBe('2026-11-20');
    await at(null);
    expect(asked('eurofxref-daily')).toBe(3);
  });

  test('a copy replaces a file that fails, for a day, and the host is not asked for a minute', async () => {
    await at(null);
    world.answers.delete('/ecb');
    world.answers.set('/ecb/eurofxref-daily.xml', { status: 503, body: '' });
    world.time.nowMs = NOW + 4 * 60 * MINUTE;
    expect((await at(null)).retrievedAtMs).toBe(NOW);
    await at(null);
    expect(asked('eurofxref-daily')).toBe(2);
    world.time.nowMs = NOW + 25 * 60 * MINUTE;
    expect((await at(null)).source).toBe('European Central Bank, through Frankfurter');
  });

  test('a day that the 90-day file does not reach yet is not answered with an older fixing', async () => {
    const days = world.answers.get('/ecb/eurofxref-hist-90d.xml') as { type: string; body: Buffer };
    const older = days.body.toString().replace('2026-11-19', '2026-11-17').replace('2026-11-18', '2026-11-16');
    world.answers.set('/ecb/eurofxref-hist-90d.xml', { ...days, body: older });
    world.answers.delete('/frankfurter/v1');
    await expect(at('2026-11-18')).rejects.toThrow('do not reach up to 2026-11-18');
    expect(await dateOf('2026-11-16')).toBe('2026-11-16');
  });
});

describe('Frankfurter', () => {
  beforeEach(() => {
    for (const path of [...world.answers.keys()].filter((key) => key.startsWith('/ecb'))) world.answers.delete(path);
  });

  test.each([
    [null, '/frankfurter/v1/latest?base=EUR'],
    ['2026-11-19', '/frankfurter/v1/2026-11-19?base=EUR'],
  ])('answers for %s when the ECB cannot', async (date, path) => {
    const { fixing, source } = await at(date);
    expect(source).toBe('European Central Bank, through Frankfurter');
    expect([...fixing.rates]).toEqual([
      ['EUR', '1'],
      ['USD', '1.25'],
      ['GBP', '0.8'],
    ]);
    expect(world.requests).toContain(path);
  });

  test.each([
    ['a later day than was asked for', { amount: 1, base: 'EUR', date: '2026-11-19', rates: { USD: 1.2 } }],
    ['another amount', { amount: 2, base: 'EUR', date: '2026-11-01', rates: { USD: 1.2 } }],
    ['a rate of zero', { amount: 1, base: 'EUR', date: '2026-11-01', rates: { USD: 0 } }],
    ['a rate that is none', { amount: 1, base: 'EUR', date: '2026-11-01', rates: { USD: 1e-9 } }],
    ['an impossible day', { amount: 1, base: 'EUR', date: '2026-11-31', rates: { USD: 1.2 } }],
  ])('is refused with %s; both are named', async (_what, body) => {
    world.answers.set('/frankfurter/v1', { body: JSON.stringify(body) });
    await expect(at('2026-11-02')).rejects.toThrow(/reference rates: ECB: .*; Frankfurter: /);
  });
});
