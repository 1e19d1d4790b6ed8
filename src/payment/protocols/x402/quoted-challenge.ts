import type { LightningRequirement } from '../../lnbtc/terms.ts';
import type { LightningOrder } from '../../rails/lightning/order.ts';
import { bazaarExtension } from './bazaar.ts';
import { encodeHeader } from './header.ts';

/** A 402 of this rail: the PAYMENT-REQUIRED header, and the body that repeats its JSON for people and tools without it. */
export interface LightningChallenge {
  readonly header: string;
  readonly body: string;
}

interface Offered {
  readonly requirement: LightningRequirement;
  readonly priceUsd: string;
  readonly btcUsd: string;
}

/** Renders the 402 for an order. Without an offer, because none could be made after a refusal, `accepts` is empty. */
export function lightningChallenge(
  order: LightningOrder<never>,
  offered: Offered | null,
  error = 'Payment required',
): LightningChallenge {
  const { endpoint, url } = order;
  const json = {
    x402Version: 2,
    error,
    resource: { url, description: endpoint.summary, mimeType: 'application/json' },
    accepts: offered ? [offered.requirement] : [],
    extensions: bazaarExtension(endpoint),
  };
  const priceUsd = offered?.priceUsd ?? endpoint.price?.usd ?? null;
  return { header: encodeHeader(json), body: JSON.stringify({ ...json, priceUsd, btcUsd: offered?.btcUsd ?? null }) };
}
