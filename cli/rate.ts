import { UpstreamFailed } from '../src/errors.ts';
import { systemClock } from '../src/lib/clock.ts';
import { jsonOrUndefined } from '../src/lib/untrusted.ts';
import { createRateSource } from '../src/upstream/rates/bitcoin.ts';
import type { Env } from './keys.ts';
import { parseUsd } from './money.ts';

// The buyer's own rate of bitcoin: what a person names, else the median of three exchanges. A seller's rate is only
// ever
// compared with it.

/** The exchanges' addresses. The variables are those of the service, for stand-ins. */
const EXCHANGES = {
  coinbase: ['UPSTREAM_COINBASE_URL', 'https://api.exchange.coinbase.com'],
  kraken: ['UPSTREAM_KRAKEN_URL', 'https://api.kraken.com'],
  bitstamp: ['UPSTREAM_BITSTAMP_URL', 'https://www.bitstamp.net'],
} as const;

const TIMEOUT_MS = 5000;
const MAX_CHARACTERS = 65_536;

/** The rate in base units for a bitcoin; null where it is not known now. */
export type OwnRate = () => Promise<bigint | null>;

/** Makes the buyer's rate. The exchanges are asked when a rate is needed, and at most once a minute. */
export function createOwnRate(btcUsd: string | null, env: Env): OwnRate {
  if (btcUsd !== null) return async () => parseUsd(btcUsd);
  const urlOf = (key: keyof typeof EXCHANGES): string => env[EXCHANGES[key][0]] || EXCHANGES[key][1];
  const urls = { coinbase: urlOf('coinbase'), kraken: urlOf('kraken'), bitstamp: urlOf('bitstamp') };
  const source = createRateSource(systemClock, { open: openSource } as never, urls);
  return async () => {
    const current = await source.current().catch(() => null);
    return current && parseUsd(current.rate);
  };
}

/** One exchange, as the service's rates read it: JSON that fits a schema, or a failure that counts as no price. */
function openSource({ name }: { readonly name: string }) {
  return {
    name,
    async jsonDated({ url }: { readonly url: string }, schema: { parse(value: unknown): unknown }) {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const answer = await fetch(url, { redirect: 'error', signal }).catch((cause: Error) => {
        throw new UpstreamFailed(name, 'gave no answer', cause);
      });
      const text = await answer.text().catch(() => '');
      if (!answer.ok || text.length > MAX_CHARACTERS) throw new UpstreamFailed(name, 'gave no answer');
      try {
        return { data: schema.parse(jsonOrUndefined(text)), retrievedAtMs: Date.now(), url };
      } catch (cause) {
        throw new UpstreamFailed(name, 'gave no price', cause);
      }
    },
  };
}
