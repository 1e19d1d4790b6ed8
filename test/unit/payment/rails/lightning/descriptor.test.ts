import { expect, test } from 'vitest';
import { createLightningDescriptor } from '../../../../../src/payment/lightning/open.ts';
import { MAINNET } from '../../../../../src/payment/lightning/terms.ts';
import type { RateSource } from '../../../../../src/upstream/rates/bitcoin.ts';
import { createManualClock } from '../../../../support/manual-clock.ts';
import { moodyEndpoint } from '../../../../support/service/moody-endpoint.ts';
import { startRates } from '../../../../support/upstream/rates.ts';

const NOW = 1_700_000_000_000;
const rate = { rate: '64000', exchanges: [], retrievedAtMs: NOW - 1500 };

function describe(rates: Partial<RateSource>, payTo: string | null = '02ab') {
  const { endpoint } = moodyEndpoint('/test/one', '0.001');
  const usdcOnly = { ...moodyEndpoint('/test/two').endpoint, onlyOn: 'paid' as const };
  const free = { ...moodyEndpoint('/test/free').endpoint, access: 'free' as const };
  const none: RateSource = { current: async () => rate };
  return createLightningDescriptor(createManualClock(NOW), [endpoint, usdcOnly, free], MAINNET, () => payTo, {
    ...none,
    ...rates,
  })();
}

test('the descriptor says how, to whom and at which rate the routes are sold', async () => {
  expect(await describe({})).toEqual({
    scheme: 'exact',
    network: MAINNET.id,
    asset: 'BTC',
    payTo: '02ab',
    spec: expect.stringContaining('scheme_exact_lnbtc.md'),
    pricing: expect.stringMatching(/median BTC\/USD of three exchanges.*an invoice lasts 300 seconds$/),
    btcUsd: '64000',
    rate: { exchanges: [], retrievedAt: 1_699_999_998, ageSeconds: 2 },
    routes: [{ route: 'GET /v1/lightning/test/one', priceUsd: '0.001' }],
  });
});

test('the descriptor shows no rate while the routes have none, however recent the last one was', async () => {
  const rates = await startRates();
  try {
    rates.quote(['85000', '85100', '85050.5']);
    expect(await describe(rates.source)).toMatchObject({ btcUsd: '85050.5' });
    rates.quote(['85000', null, '90000']);
    rates.time.nowMs += 60_000;
    expect(await describe(rates.source, null)).toMatchObject({ btcUsd: null, rate: null, payTo: null });
  } finally {
    await rates.stop();
  }
});

test('after the clock was set back the descriptor shows no rate as newer than now', async () => {
  const current = async () => ({ ...rate, retrievedAtMs: NOW + 5000 });
  expect(await describe({ current })).toMatchObject({ rate: { ageSeconds: 0 } });
});
