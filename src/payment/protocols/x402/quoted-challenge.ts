import type { Quote, QuoteSubject } from '../../protocol.ts';
import { bazaarExtension } from './bazaar.ts';
import { encodeHeader } from './header.ts';

/** A 402 made for one request: the PAYMENT-REQUIRED header, and a body that repeats its JSON for people and tools that do not read headers. */
interface QuotedChallenge {
  readonly header: string;
  readonly body: string;
}

/** Renders the 402 of a quote. `quote` is null when none could be made after a refusal; `accepts` is then empty. */
export function quotedChallenge(
  { endpoint, url, hint }: QuoteSubject,
  quote: Quote | null,
  error = 'Payment required',
): QuotedChallenge {
  const json = {
    x402Version: 2,
    error,
    resource: { url, description: `${endpoint.summary} ${hint}`, mimeType: 'application/json' },
    accepts: quote ? [quote.requirement] : [],
    extensions: bazaarExtension(endpoint),
  };
  const priceUsd = quote?.priceUsd ?? endpoint.price?.usd ?? null;
  return { header: encodeHeader(json), body: JSON.stringify({ ...json, priceUsd, btcUsd: quote?.btcUsd ?? null }) };
}
