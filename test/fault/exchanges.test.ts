import { describe, expect, test } from 'vitest';
import { Unavailable } from '../../src/errors.ts';
import { countRunningTime } from '../support/running-time.ts';
import { timeoutFor } from '../support/upstream/patience.ts';
import { type ExchangeKey, KEYS, NOW, type Rates, startRates } from '../support/upstream/rates.ts';
import { FAULTS, type Fault } from '../support/upstream/replay.ts';

// Every fault of an exchange. With one exchange failing the rate is the mean of the other two. With two failing there is no rate. An expired rate never
// prices a new invoice.

const PRICES: Record<ExchangeKey, string> = { coinbase: '85000', kraken: '85100', bitstamp: '85200' };
const REST_MS = 5000;

countRunningTime();

async function inWorld(fault: Fault, task: (rates: Rates) => Promise<void>): Promise<void> {
  const rates = await startRates({ timeoutMs: timeoutFor(fault, 1500), fault });
  try {
    rates.quote(KEYS.map((key) => PRICES[key]));
    await task(rates);
  } finally {
    await rates.stop();
  }
}

const unavailable = { status: 503, code: 'btc_rate_unavailable', charged: false };

describe.each(FAULTS)('%s', (fault) => {
  test.concurrent.each(KEYS)('at %s alone: the rate comes from the other two', async (failing) => {
    await inWorld(fault, async ({ servers, source }) => {
      await servers[failing].setFault(fault);
      const left = KEYS.filter((key) => key !== failing).map((key) => PRICES[key]);
      const { rate, exchanges } = await source.current();
      expect(exchanges.map((exchange) => exchange.rate)).toEqual(left);
      expect(Number(rate)).toBe(left.reduce((sum, price) => sum + Number(price), 0) / 2);
    });
  });

  test.concurrent.each(KEYS)(
    'everywhere but at %s: there is no rate, nothing is charged, the error shows no URL, and the rate is back afterwards',
    async (well) => {
      await inWorld(fault, async ({ servers, source, time }) => {
        const failing = KEYS.filter((key) => key !== well);
        for (const key of failing) await servers[key].setFault(fault);
        const refused = await source.current().catch((error: unknown) => error);
        expect(refused).toBeInstanceOf(Unavailable);
        expect(refused).toMatchObject(unavailable);
        expect((refused as Error).message).not.toMatch(/127\.0\.0\.1|https?:/);
        for (const key of failing) await servers[key].setFault(null);
        time.nowMs += REST_MS;
        expect((await source.current()).rate).toBe('85100');
      });
    },
  );

  test.concurrent('everywhere, after there was a rate: the rate is not used after it has expired', async () => {
    await inWorld(fault, async ({ servers, source, time }) => {
      expect((await source.current()).rate).toBe('85100');
      for (const key of KEYS) await servers[key].setFault(fault);
      time.nowMs = NOW + 59_999;
      expect((await source.current()).rate).toBe('85100');
      time.nowMs = NOW + 60_000;
      await expect(source.current()).rejects.toMatchObject(unavailable);
    });
  });
});
