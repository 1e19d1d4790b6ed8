import type { Quote, Quoted } from '../../protocol.ts';
import { bazaarExtension } from './bazaar.ts';
import { encodeHeader } from './header.ts';

/** A 402 that was made for one request: the PAYMENT-REQUIRED header, and the body that repeats its JSON for people and tools without it. */
interface QuotedChallenge {
  readonly header: string;
  readonly body: string;
}

/** Renders the 402 of a quote. Without one, because none could be made after a refusal, `accepts` is empty. */
export function quotedChallenge(
  { endpoint, url }: Quoted,
  quote: Quote | null,
  error = 'Payment required',
): QuotedChallenge {
  const json = {
    x402Version: 2,
    error,
    resource: { url, description: endpoint.summary, mimeType: 'application/json' },
    accepts: quote ? [quote.requirement] : [],
    extensions: bazaarExtension(endpoint),
  };
  const priceUsd = quote?.priceUsd ?? endpoint.price?.usd ?? null;
  return { header: encodeHeader(json), body: JSON.stringify({ ...json, priceUsd, btcUsd: quote?.btcUsd ?? null }) };
}
