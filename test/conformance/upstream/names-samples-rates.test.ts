import { strToU8, zipSync } from 'fflate';
import { expect, test } from 'vitest';
import { describeSamples } from '../../support/upstream/name-samples.ts';
import { ask } from '../../support/upstream/names-endpoints.ts';

describeSamples(
  'currency/rates over recorded answers',
  {
    folders: ['ecb', 'frankfurter'],
    notAskedFor: [
      'ecb/eurofxref.csv',
      'ecb/sdmx-exr-2026-02-17.csv',
      'frankfurter/v2-currencies-example.json',
      'frankfurter/v2-providers-example.json',
      'frankfurter/v2-rate-pair-example.json',
      'frankfurter/v2-rates-example.json',
    ],
  },
  (samples) => {
    const rates = (query: Record<string, string>) =>
      ask<{ date: string; rates: Record<string, string>; source: { name: string } }>(
        samples.world,
        '/currency/rates',
        query,
      );
    const serveHistory = () => {
      const csv = strToU8(samples.bytes('ecb/eurofxref-hist-excerpt.csv').toString('utf8'));
      samples.world.answers.set('/ecb/eurofxref-hist.zip', {
        type: 'application/zip',
        body: Buffer.from(zipSync({ 'eurofxref-hist.csv': csv })),
      });
    };

    test('gives the rates of the daily file, and of the 90-day file for a past day', async () => {
      samples.world.time.nowMs = Date.parse('2018-06-11T18:00:00Z');
      samples.serve('/ecb/eurofxref-daily.xml', 'ecb/eurofxref-daily-2018-06-11.xml', 'text/xml');
      samples.serve('/ecb/eurofxref-hist-90d.xml', 'ecb/eurofxref-hist-90d-excerpt.xml', 'text/xml');
      const latest = await rates({ base: 'EUR' });
      expect(latest.date).toBe('2018-06-11');
      expect(Object.keys(latest.rates)).toHaveLength(32);
      expect(latest.rates).toMatchObject({ USD: '1.179', JPY: '129.62', RUB: '73.7903' });
      // A Sunday has Friday's rates.
      const sunday = await rates({ base: 'EUR', symbols: 'USD', date: '2018-06-10' });
      expect([sunday.date, sunday.rates]).toEqual(['2018-06-08', { USD: '1.1754' }]);
    });

    test.each([
      ['2026-04-06', '2026-04-02', { USD: '1.1525' }],
      ['2025-12-28', '2025-12-24', { USD: expect.any(String), BGN: '1.9558' }],
      ['2026-01-01', '2025-12-31', { BGN: '1.9558' }],
      ['2023-01-01', '2022-12-30', { HRK: expect.any(String) }],
      ['2022-03-01', '2022-03-01', { RUB: expect.any(String) }],
      ['1999-01-04', '1999-01-04', { USD: '1.1789' }],
    ])('gives for %s the rates of %s, from the history', async (date, day, expected) => {
      samples.world.time.nowMs = Date.parse('2026-04-13T18:00:00Z');
      const head =
        '<Envelope><Cube><Cube time="2026-04-13"><Cube currency="USD" rate="1.1684"/></Cube></Cube></Envelope>';
      samples.world.answers.set('/ecb/eurofxref-daily.xml', { type: 'text/xml', body: head });
      samples.world.answers.set('/ecb/eurofxref-hist-90d.xml', { type: 'text/xml', body: head });
      serveHistory();
      const reply = await rates({ base: 'EUR', date });
      expect(reply.date).toBe(day);
      expect(reply.rates).toMatchObject(expected);
      expect(Object.values(reply.rates)).not.toContain('N/A');
    });

    test('asks Frankfurter when the ECB sends a page instead of XML, and names both when both fail', async () => {
      samples.serve('/ecb/eurofxref-daily.xml', 'ecb/not-xml.html', 'text/xml');
      samples.serve('/frankfurter/v1', 'frankfurter/v1-latest-base-USD.json');
      const reply = await rates({ base: 'USD' });
      expect([reply.date, reply.source.name]).toEqual(['2026-09-18', 'European Central Bank, through Frankfurter']);
      expect(reply.rates).toMatchObject({ EUR: '0.8726', IDR: '17823', GBP: '0.74939' });
      samples.world.answers.delete('/frankfurter/v1');
      samples.world.time.nowMs += 48 * 3_600_000;
      await expect(rates({})).rejects.toThrow(/ECB: eurofxref-daily\.xml .*; Frankfurter: /);
    });

    test.each([
      ['v1-latest-USD-EUR', '2026-07-31', '0.8707'],
      ['v1-latest-USD-EUR-2026-10-02', '2026-10-02', '0.89087'],
    ])('understands Frankfurter’s answer %s', async (file, date, rate) => {
      samples.serve('/frankfurter/v1', `frankfurter/${file}.json`);
      const reply = await rates({ base: 'USD', symbols: 'EUR' });
      expect([reply.date, reply.rates]).toEqual([date, { EUR: rate }]);
    });
  },
);
