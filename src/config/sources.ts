import { isIP } from 'node:net';
import { z } from 'zod';
import { address, baseUrl, type Given, httpUrl, privateKey, type Read, whole } from './table.ts';

// Where data is read that is not the chain's, and what pages link to. `wiring/sources.ts` has the sources' time-outs.

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

export function assembleWeb(env: Read<typeof webEnvironment>) {
  return {
    /** In the User-Agent, for the operators of servers that we ask; null: the public origin. */
    contactUrl: env.CONTACT_URL ?? null,
    /** Time-out of fetching one page, all redirects included. */
    timeoutMs: env.WEB_TIMEOUT_MS,
    /** Requests a minute to one host, for all payers together; 0 is off. */
    hostPerMinute: env.WEB_HOST_PER_MINUTE,
    pageWorkers: env.WEB_PAGE_WORKERS,
    /** Host names with an address and a port that replace DNS. Empty in production. */
    testHosts: env.ALLOW_TEST_HOSTS,
  };
}

export type WebConfig = Readonly<ReturnType<typeof assembleWeb>>;

export const siteEnvironment = {
  SOURCE_URL: httpUrl.optional(),
  TERMS_URL: httpUrl.optional(),
  DEMO_BUYER_PRIVATE_KEY: privateKey.optional(),
};

/** A key that pages pay with must never be one of money. */
export function siteProblems(given: Given): string[] {
  if (given.DEMO_BUYER_PRIVATE_KEY === undefined) return [];
  const isDemo = given.NETWORK === 'custom' && given.PLAY_MONEY === 'on' && given.NODE_ENV !== 'production';
  return isDemo
    ? []
    : ['DEMO_BUYER_PRIVATE_KEY is for play money alone (it needs NETWORK=custom and PLAY_MONEY=on, not in production)'];
}

export function assembleSite(env: Read<typeof siteEnvironment>) {
  return {
    sourceUrl: env.SOURCE_URL ?? null,
    /** The operator's terms; null: the service's own page. */
    termsUrl: env.TERMS_URL ?? null,
    /** Of a buyer of play money, for whom the pages may pay; null: none. */
    demoBuyerKey: (env.DEMO_BUYER_PRIVATE_KEY as `0x${string}` | undefined) ?? null,
  };
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

/** Base URLs without a trailing slash. */
export function assemblePackages(env: Read<typeof packagesEnvironment>) {
  return {
    /** null: the default of npm's own client. */
    npmUrl: env.UPSTREAM_NPM_URL ?? null,
    npmDownloadsUrl: env.UPSTREAM_NPM_DOWNLOADS_URL,
    depsDevUrl: env.UPSTREAM_DEPS_DEV_URL,
    pypiUrl: env.UPSTREAM_PYPI_URL,
    osvUrl: env.UPSTREAM_OSV_URL,
    nugetUrl: env.UPSTREAM_NUGET_URL,
    packagistUrl: env.UPSTREAM_PACKAGIST_URL,
  };
}

export type PackagesConfig = Readonly<ReturnType<typeof assemblePackages>>;

export const namesEnvironment = {
  UPSTREAM_DNS_URL: baseUrl.default('https://cloudflare-dns.com/dns-query'),
  UPSTREAM_DNS_FALLBACK_URL: baseUrl.default('https://dns.google/resolve'),
  UPSTREAM_RDAP_BOOTSTRAP_URL: baseUrl.default('https://data.iana.org/rdap/dns.json'),
  UPSTREAM_ECB_URL: baseUrl.default('https://www.ecb.europa.eu/stats/eurofxref'),
  UPSTREAM_FRANKFURTER_URL: baseUrl.default('https://api.frankfurter.dev/v1'),
  UPSTREAM_WIKIPEDIA_URL: baseUrl.default('https://{lang}.wikipedia.org'),
};

/** A mirror or a test server can replace each source. */
export function assembleNames(env: Read<typeof namesEnvironment>) {
  return {
    /** Answers `?name=…&type=…` in the JSON form of DNS over HTTPS. */
    dns: env.UPSTREAM_DNS_URL,
    dnsFallback: env.UPSTREAM_DNS_FALLBACK_URL,
    rdapBootstrap: env.UPSTREAM_RDAP_BOOTSTRAP_URL,
    ecb: env.UPSTREAM_ECB_URL,
    /** Asked when the ECB fails; ends with the version. */
    frankfurter: env.UPSTREAM_FRANKFURTER_URL,
    /** `{lang}` stands for the language edition. */
    wikipedia: env.UPSTREAM_WIKIPEDIA_URL,
  };
}

export type NamesConfig = Readonly<ReturnType<typeof assembleNames>>;

type Address = `0x${string}`;

export const marketsEnvironment = {
  UPSTREAM_COINBASE_URL: baseUrl.default('https://api.exchange.coinbase.com'),
  UPSTREAM_KRAKEN_URL: baseUrl.default('https://api.kraken.com'),
  UPSTREAM_BITSTAMP_URL: baseUrl.default('https://www.bitstamp.net'),
  USYC_TOKEN: address.optional(),
  USYC_ORACLE: address.optional(),
};

/** Circle's deployments of USYC on Arc and its test network. */
const USYC: Record<string, { token: Address; oracle: Address }> = {
  arc: { token: '0x8a5D989Bbb96929F689B0200f435f53dA42bF490', oracle: '0x4BC8d5aCD3d040d2903dD9C5B7048520c6ff537A' },
  'arc-testnet': {
    token: '0xe9185F0c5F296Ed1797AaE4238D26CCaBEadb86C',
    oracle: '0x52b56c7642E71dc54714d879127d97cd0B3D4581',
  },
};

export function assembleMarkets(env: Read<typeof marketsEnvironment>, network: string) {
  const token = (env.USYC_TOKEN as Address | undefined) ?? USYC[network]?.token;
  const oracle = (env.USYC_ORACLE as Address | undefined) ?? USYC[network]?.oracle;
  return {
    /** Base URLs of the exchanges' BTC/USD tickers, without their paths. */
    exchanges: {
      coinbase: env.UPSTREAM_COINBASE_URL,
      kraken: env.UPSTREAM_KRAKEN_URL,
      bitstamp: env.UPSTREAM_BITSTAMP_URL,
    },
    /** USYC and its Chainlink-style price oracle on the configured chain; null when there is none. */
    usyc: token && oracle ? { token, oracle } : null,
  };
}

export type MarketsConfig = Readonly<ReturnType<typeof assembleMarkets>>;

export const marketEnvironment = {
  MARKET_PROBE_INTERVAL_SECONDS: whole(3600, 60, 86_400),
  MARKET_SUBMITS_PER_HOUR: whole(20),
  MARKET_MAX_LISTINGS: whole(1000, 1, 10_000),
  MARKET_MAX_PER_HOST: whole(30, 1, 10_000),
  MARKET_TIMEOUT_MS: whole(8000, 100, 60_000),
};

export function assembleMarket(env: Read<typeof marketEnvironment>) {
  return {
    probeIntervalMs: env.MARKET_PROBE_INTERVAL_SECONDS * 1000,
    /** Submissions an hour of one client; 0 is off. */
    submitsPerHour: env.MARKET_SUBMITS_PER_HOUR,
    maxListings: env.MARKET_MAX_LISTINGS,
    /** Of one host, counted with all hosts of its registered domain. */
    maxPerHost: env.MARKET_MAX_PER_HOST,
    timeoutMs: env.MARKET_TIMEOUT_MS,
  };
}

/** It lists entries on Arc: developers.circle.com/agent-stack/agent-marketplace/discovery-api */
const CIRCLE = 'https://api.circle.com/v2/x402/discovery/resources';
const BY_NETWORK: Record<string, string> = { arc: CIRCLE, 'arc-testnet': CIRCLE };

export const discoveryEnvironment = {
  UPSTREAM_CATALOGUE_URL: z
    .union([z.literal('off'), z.url({ protocol: /^https?$/ })], 'an http or https URL, or off')
    .optional(),
};

/** Null: no catalogue is read, as on a custom chain by default, because none lists entries there. */
export function assembleDiscovery(env: Read<typeof discoveryEnvironment>, network: string) {
  const asked = env.UPSTREAM_CATALOGUE_URL ?? BY_NETWORK[network] ?? 'off';
  return { catalogueUrl: asked === 'off' ? null : asked };
}
