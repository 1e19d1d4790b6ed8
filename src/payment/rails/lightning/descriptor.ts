import type { Endpoint } from '../../../catalogue/endpoint.ts';
import { entriesOn, pathOn } from '../../../catalogue/paths.ts';
import type { Clock } from '../../../lib/clock.ts';
import type { RateSource } from '../../../upstream/rates/exchanges.ts';
import type { LightningNetwork } from '../../lnbtc/networks.ts';
import { LNBTC_SPEC_URL } from '../../lnbtc/networks.ts';
import { INVOICE_SECONDS } from '../../lnbtc/terms.ts';

interface DescriptorOptions {
  readonly catalogue: readonly Endpoint<never>[];
  readonly network: LightningNetwork;
  readonly payTo: () => string | null;
  readonly rates: RateSource;
  readonly clock: Clock;
}

const PRICING = `each route's USD price converted to sats at the median BTC/USD of three exchanges, rounded up to a whole sat, minimum 1; an invoice lasts ${INVOICE_SECONDS} seconds`;

/** The answer of `GET /v1/lightning`: how and at which rate the routes are sold. `btcUsd`, `rate` and `payTo` are null while unknown. */
export function createLightningDescriptor({ catalogue, network, payTo, rates, clock }: DescriptorOptions) {
  const routes = entriesOn(catalogue, 'lightning').map((endpoint) => ({
    route: `GET ${pathOn(endpoint, 'lightning')}`,
    priceUsd: endpoint.price?.usd ?? null,
  }));
  return async () => {
    // The rate of a quote made now. While there is none every route answers 503, so an older one would promise a price that nobody gets.
    const rate = await rates.current().catch(() => null);
    return {
      scheme: 'exact',
      network: network.id,
      asset: 'BTC',
      payTo: payTo(),
      spec: LNBTC_SPEC_URL,
      pricing: PRICING,
      btcUsd: rate?.rate ?? null,
      rate: rate && {
        exchanges: rate.exchanges,
        retrievedAt: Math.floor(rate.retrievedAtMs / 1000),
        ageSeconds: Math.max(0, Math.round((clock.nowMs() - rate.retrievedAtMs) / 1000)),
      },
      routes,
    };
  };
}
