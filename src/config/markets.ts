import type { z } from 'zod';
import { address, baseUrl } from './fields.ts';

type Address = `0x${string}`;

/** The sources of the bitcoin price and of USYC. */
export interface MarketsConfig {
  /** Base URLs of the exchanges' BTC/USD tickers, without their paths. */
  readonly exchanges: { readonly coinbase: string; readonly kraken: string; readonly bitstamp: string };
  /** USYC and its Chainlink-style price oracle on the configured chain; null when there is none. */
  readonly usyc: { readonly token: Address; readonly oracle: Address } | null;
}

/** The environment's keys of these sources. */
export const marketsEnvironment = {
  UPSTREAM_COINBASE_URL: baseUrl.default('https://api.exchange.coinbase.com'),
  UPSTREAM_KRAKEN_URL: baseUrl.default('https://api.kraken.com'),
  UPSTREAM_BITSTAMP_URL: baseUrl.default('https://www.bitstamp.net'),
  USYC_TOKEN: address.optional(),
  USYC_ORACLE: address.optional(),
};

/** Circle's deployments of USYC on Arc and its test network. */
const USYC: Record<string, { token: Address; oracle: Address }> = {
  arc: {
    token: '0x8a5D989Bbb96929F689B0200f435f53dA42bF490',
    oracle: '0x4BC8d5aCD3d040d2903dD9C5B7048520c6ff537A',
  },
  'arc-testnet': {
    token: '0xe9185F0c5F296Ed1797AaE4238D26CCaBEadb86C',
    oracle: '0x52b56c7642E71dc54714d879127d97cd0B3D4581',
  },
};

/** Builds the sources. */
export function assembleMarkets(env: z.output<z.ZodObject<typeof marketsEnvironment>>, network: string): MarketsConfig {
  const token = (env.USYC_TOKEN as Address | undefined) ?? USYC[network]?.token;
  const oracle = (env.USYC_ORACLE as Address | undefined) ?? USYC[network]?.oracle;
  return {
    exchanges: {
      coinbase: env.UPSTREAM_COINBASE_URL,
      kraken: env.UPSTREAM_KRAKEN_URL,
      bitstamp: env.UPSTREAM_BITSTAMP_URL,
    },
    usyc: token && oracle ? { token, oracle } : null,
  };
}
