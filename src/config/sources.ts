import { isIP } from 'node:net';
import { z } from 'zod';
import { address, baseUrl, httpUrl, privateKey, whole } from './table.ts';

// Where data is read that is not the chain's, and what pages link to. `wiring/sources.ts` has the sources' time-outs.

export interface WebConfig {
  /** In the User-Agent, for the operators of servers that we ask; null: the public origin. */
  readonly contactUrl: string | null;
  /** Time-out of fetching one page, all redirects included. */
  readonly timeoutMs: number;
  /** Requests a minute to one host, for all payers together; 0 is off. */
  readonly hostPerMinute: number;
  readonly pageWorkers: number;
  /** Host names with an address and a port that replace DNS. Empty in production. */
  readonly testHosts: ReadonlyMap<string, { readonly address: string; readonly port: number }>;
}

const FORM = 'comma-separated name=address:port, each name with a dot in it';

const testHosts = z
  .string()
  .default('')
  .transform((text, context) => {
    const hosts = new Map<string, { address: string; port: number }>();
    for (const entry of text.split(',').filter((part) => part.trim() !== '')) {
      const [, name, address, port] = /^([a-z0-9.-]+\.[a-z0-9-]+)=([\d.]+):(\d{1,5})$/.exec(entry.trim()) ?? [];
      if (name === undefined || address === undefined || isIP(address) === 0) {
        context.addIssue({ code: 'custom', message: FORM });
        return z.NEVER;
      }
      hosts.set(name, { address, port: Number(port) });
    }
    return hosts;
  });

export const webEnvironment = {
  CONTACT_URL: z.url({ protocol: /^(https?|mailto)$/, error: 'an http, https or mailto URL' }).optional(),
  // The endpoint's own time-out is 15 s.
  WEB_TIMEOUT_MS: whole(12_000, 100, 60_000),
  WEB_HOST_PER_MINUTE: whole(60, 0, 100_000),
  WEB_PAGE_WORKERS: whole(1, 1, 16),
  ALLOW_TEST_HOSTS: testHosts,
};

export function assembleWeb(env: z.output<z.ZodObject<typeof webEnvironment>>): WebConfig {
  return {
    contactUrl: env.CONTACT_URL ?? null,
    timeoutMs: env.WEB_TIMEOUT_MS,
    hostPerMinute: env.WEB_HOST_PER_MINUTE,
    pageWorkers: env.WEB_PAGE_WORKERS,
    testHosts: env.ALLOW_TEST_HOSTS,
  };
}

export interface SiteConfig {
  readonly sourceUrl: string | null;
  /** The operator's terms; null: the service's own page. */
  readonly termsUrl: string | null;
  /** Of a buyer of play money, for whom the pages may pay; null: none. */
  readonly demoBuyerKey: `0x${string}` | null;
}

export const siteEnvironment = {
  SOURCE_URL: httpUrl.optional(),
  TERMS_URL: httpUrl.optional(),
  DEMO_BUYER_PRIVATE_KEY: privateKey.optional(),
};

/** A key that pages pay with must never be one of money. */
export function siteProblems(given: Readonly<Record<string, string | undefined>>): string[] {
  if (given.DEMO_BUYER_PRIVATE_KEY === undefined) return [];
  const isDemo = given.NETWORK === 'custom' && given.PLAY_MONEY === 'on' && given.NODE_ENV !== 'production';
  return isDemo
    ? []
    : ['DEMO_BUYER_PRIVATE_KEY is for play money alone (it needs NETWORK=custom and PLAY_MONEY=on, not in production)'];
}

export function assembleSite(env: z.output<z.ZodObject<typeof siteEnvironment>>): SiteConfig {
  return {
    sourceUrl: env.SOURCE_URL ?? null,
    termsUrl: env.TERMS_URL ?? null,
    demoBuyerKey: (env.DEMO_BUYER_PRIVATE_KEY as `0x${string}` | undefined) ?? null,
  };
}

/** Base URLs without a trailing slash. */
export interface PackagesConfig {
  /** null: the default of npm's own client. */
  readonly npmUrl: string | null;
  readonly npmDownloadsUrl: string;
  readonly depsDevUrl: string;
  readonly pypiUrl: string;
  readonly osvUrl: string;
  readonly nugetUrl: string;
  readonly packagistUrl: string;
}

const mirrorUrl = httpUrl.transform((url) => url.replace(/\/+$/, ''));

export const packagesEnvironment = {
  UPSTREAM_NPM_URL: mirrorUrl.optional(),
  UPSTREAM_NPM_DOWNLOADS_URL: mirrorUrl.default('https://api.npmjs.org'),
  UPSTREAM_DEPS_DEV_URL: mirrorUrl.default('https://api.deps.dev'),
  UPSTREAM_PYPI_URL: mirrorUrl.default('https://pypi.org'),
  UPSTREAM_OSV_URL: mirrorUrl.default('https://api.osv.dev'),
  UPSTREAM_NUGET_URL: mirrorUrl.default('https://api.nuget.org'),
  UPSTREAM_PACKAGIST_URL: mirrorUrl.default('https://repo.packagist.org'),
};

export function assemblePackages(env: z.output<z.ZodObject<typeof packagesEnvironment>>): PackagesConfig {
  return {
    npmUrl: env.UPSTREAM_NPM_URL ?? null,
    npmDownloadsUrl: env.UPSTREAM_NPM_DOWNLOADS_URL,
    depsDevUrl: env.UPSTREAM_DEPS_DEV_URL,
    pypiUrl: env.UPSTREAM_PYPI_URL,
    osvUrl: env.UPSTREAM_OSV_URL,
    nugetUrl: env.UPSTREAM_NUGET_URL,
    packagistUrl: env.UPSTREAM_PACKAGIST_URL,
  };
}

/** A mirror or a test server can replace each source. */
export interface NamesConfig {
  /** Answers `?name=…&type=…` in the JSON form of DNS over HTTPS. */
  readonly dns: string;
  readonly dnsFallback: string;
  readonly rdapBootstrap: string;
  readonly ecb: string;
  /** Asked when the ECB fails; ends with the version. */
  readonly frankfurter: string;
  /** `{lang}` stands for the language edition. */
  readonly wikipedia: string;
}

export const namesEnvironment = {
  UPSTREAM_DNS_URL: baseUrl.default('https://cloudflare-dns.com/dns-query'),
  UPSTREAM_DNS_FALLBACK_URL: baseUrl.default('https://dns.google/resolve'),
  UPSTREAM_RDAP_BOOTSTRAP_URL: baseUrl.default('https://data.iana.org/rdap/dns.json'),
  UPSTREAM_ECB_URL: baseUrl.default('https://www.ecb.europa.eu/stats/eurofxref'),
  UPSTREAM_FRANKFURTER_URL: baseUrl.default('https://api.frankfurter.dev/v1'),
  UPSTREAM_WIKIPEDIA_URL: baseUrl.default('https://{lang}.wikipedia.org'),
};

export function assembleNames(env: z.output<z.ZodObject<typeof namesEnvironment>>): NamesConfig {
  return {
    dns: env.UPSTREAM_DNS_URL,
    dnsFallback: env.UPSTREAM_DNS_FALLBACK_URL,
    rdapBootstrap: env.UPSTREAM_RDAP_BOOTSTRAP_URL,
    ecb: env.UPSTREAM_ECB_URL,
    frankfurter: env.UPSTREAM_FRANKFURTER_URL,
    wikipedia: env.UPSTREAM_WIKIPEDIA_URL,
  };
}

type Address = `0x${string}`;

export interface MarketsConfig {
  /** Base URLs of the exchanges' BTC/USD tickers, without their paths. */
  readonly exchanges: { readonly coinbase: string; readonly kraken: string; readonly bitstamp: string };
  /** USYC and its Chainlink-style price oracle on the configured chain; null when there is none. */
  readonly usyc: { readonly token: Address; readonly oracle: Address } | null;
}

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

export interface MarketConfig {
  readonly probeIntervalMs: number;
  /** Submissions an hour of one client; 0 is off. */
  readonly submitsPerHour: number;
  readonly maxListings: number;
  /** Of one host, counted with all hosts of its registered domain. */
  readonly maxPerHost: number;
  readonly timeoutMs: number;
}

export const marketEnvironment = {
  MARKET_PROBE_INTERVAL_SECONDS: whole(3600, 60, 86_400),
  MARKET_SUBMITS_PER_HOUR: whole(20),
  MARKET_MAX_LISTINGS: whole(1000, 1, 10_000),
  MARKET_MAX_PER_HOST: whole(30, 1, 10_000),
  MARKET_TIMEOUT_MS: whole(8000, 100, 60_000),
};

export function assembleMarket(env: z.output<z.ZodObject<typeof marketEnvironment>>): MarketConfig {
  return {
    probeIntervalMs: env.MARKET_PROBE_INTERVAL_SECONDS * 1000,
    submitsPerHour: env.MARKET_SUBMITS_PER_HOUR,
    maxListings: env.MARKET_MAX_LISTINGS,
    maxPerHost: env.MARKET_MAX_PER_HOST,
    timeoutMs: env.MARKET_TIMEOUT_MS,
  };
}

export interface DiscoveryConfig {
  /** Null: no catalogue is read. */
  readonly catalogueUrl: string | null;
}

/** It lists entries on Arc: developers.circle.com/agent-stack/agent-marketplace/discovery-api */
const CIRCLE = 'https://api.circle.com/v2/x402/discovery/resources';
const BY_NETWORK: Record<string, string> = { arc: CIRCLE, 'arc-testnet': CIRCLE };

export const discoveryEnvironment = {
  UPSTREAM_CATALOGUE_URL: z
    .union([z.literal('off'), z.url({ protocol: /^https?$/ })], 'an http or https URL, or off')
    .optional(),
};

/** On a custom chain no catalogue is read by default, because none lists entries there. */
export function assembleDiscovery(
  env: z.output<z.ZodObject<typeof discoveryEnvironment>>,
  network: string,
): DiscoveryConfig {
  const asked = env.UPSTREAM_CATALOGUE_URL ?? BY_NETWORK[network] ?? 'off';
  return { catalogueUrl: asked === 'off' ? null : asked };
}
