import { isIP } from 'node:net';
import { z } from 'zod';
import { key, optional, type Rule, type Settings, table } from './table.ts';
import { address, baseUrl, entries, httpUrl, privateKey, scaled, text, url, whole } from './values.ts';

// Where data is read that is not the chain's, what pages link to, and what registries of agents read.

/** A key that pages pay with must never be one of money. */
const demoIsForPlayMoney: Rule = ({ DEMO_BUYER_PRIVATE_KEY, NETWORK, PLAY_MONEY, NODE_ENV }) =>
  DEMO_BUYER_PRIVATE_KEY !== undefined &&
  !(NETWORK === 'custom' && PLAY_MONEY === 'on' && NODE_ENV !== 'production') &&
  'DEMO_BUYER_PRIVATE_KEY is for play money alone (it needs NETWORK=custom and PLAY_MONEY=on, not in production)';

export const SITE = table('What pages link to', [demoIsForPlayMoney], {
  sourceUrl: optional('SOURCE_URL', httpUrl)`Where this service's source code is: a link below every page.`,
  termsUrl: optional('TERMS_URL', httpUrl)`Your own terms: the link below every page leads there. Default: /terms,
    which says what the service does and does not promise.`,
  demoBuyerKey: optional('DEMO_BUYER_PRIVATE_KEY', privateKey)`The key of a buyer of play money, whom the pages at
    http://127.0.0.1 pay with; \`npm run demo\` sets it. Only with NETWORK=custom and PLAY_MONEY=on, never in
    production, and never a key that holds money on any chain.`,
});

/** Only public keys fit: a private one is given as hex by the tools that make it. */
const PROOF = /^v=MCPv1; k=(ed25519; p=[A-Za-z0-9+/]{43}=|ecdsap384; p=[A-Za-z0-9+/]{66}==)$/;
const proof = text(PROOF, 'a line v=MCPv1; k=ed25519; p=… with the public key in base64');
const registrations = entries(
  /^(eip155:[1-9]\d{0,14}:0x[0-9a-fA-F]{40})=(\d{1,15})$/,
  'eip155:CHAIN:0xREGISTRY=AGENT',
  ([agentRegistry = '', agentId]) => ({ agentId: Number(agentId), agentRegistry }),
);

export const AGENTS = table('What registries of agents read', [], {
  registryProof: optional('MCP_REGISTRY_AUTH', proof)`The line that /.well-known/mcp-registry-auth answers, by which the
    MCP registry knows that this host is yours. It has a public key alone: the private one stays with whoever publishes
    (docs/operating.md). Unset: no such route.`,
  registrations: key('AGENT_REGISTRATIONS', registrations, '')`Where this service is registered under ERC-8004, between
    commas, each as eip155:CHAIN:0xREGISTRY=AGENT. /.well-known/agent-registration.json repeats them.`,
});

const contactUrl = url(/^(https?|mailto)$/, 'an http, https or mailto URL');
const testHost = /^([a-z0-9.-]+\.[a-z0-9-]+)=([\d.]+):(\d{1,5})$/;
const testHosts = entries(
  testHost,
  'name=address:port, each name with a dot in it',
  ([name = '', address = '', port]) => {
    return isIP(address) === 0 ? null : ([name, { address, port: Number(port) }] as const);
  },
).transform((hosts) => new Map(hosts));

const NO_TEST_HOSTS = 'it leads around the address guard; production refuses to start with it';
const noTestHosts: Rule = ({ NODE_ENV, ALLOW_TEST_HOSTS }) =>
  NODE_ENV === 'production' && ALLOW_TEST_HOSTS !== undefined && `ALLOW_TEST_HOSTS is set (${NO_TEST_HOSTS})`;

export const WEB = table('Web pages', [noTestHosts], {
  contactUrl: optional('CONTACT_URL', contactUrl)`A URL about this service, for operators of the servers that it calls
    and readers of its pages: in every outgoing User-Agent (default: PUBLIC_ORIGIN), and a link below every page.`,
  // The endpoint's own time-out is 15 s.
  timeoutMs: key('WEB_TIMEOUT_MS', whole(100, 60_000), '12000')`For a page with redirects; then the call is a 502.`,
  hostPerMinute: key('WEB_HOST_PER_MINUTE', whole(0, 100_000), '60')`Requests per minute to one host for web/*, of all
    payers together. 0 is off.`,
  pageWorkers: key('WEB_PAGE_WORKERS', whole(1, 16), '1')`Number of threads that parse pages.`,
  testHosts: key('ALLOW_TEST_HOSTS', testHosts, '')`For tests and demonstrations only; production refuses to start with
    it. Comma-separated: these hosts are connected there, without DNS.`,
});

const source = (name: string, fallback: string) => key(name, baseUrl, fallback);

export const PACKAGES = table('Package data: base URLs, for a mirror or a test', [], {
  npmUrl: optional('UPSTREAM_NPM_URL', baseUrl)`The npm registry. Default: that of npm's own client library.`,
  npmDownloadsUrl: source('UPSTREAM_NPM_DOWNLOADS_URL', 'https://api.npmjs.org')`npm's download counts; without them
    weeklyDownloads is null.`,
  depsDevUrl: source('UPSTREAM_DEPS_DEV_URL', 'https://api.deps.dev')`deps.dev: whether a package exists
    (packages/vulns), how many packages depend on one (packages/npm, packages/pypi), and the publish date of an npm
    package whose whole registry answer is too large.`,
  pypiUrl: source('UPSTREAM_PYPI_URL', 'https://pypi.org')`PyPI's JSON API and its attestations.`,
  osvUrl: source('UPSTREAM_OSV_URL', 'https://api.osv.dev')`OSV.dev's vulnerability API.`,
  nugetUrl: source('UPSTREAM_NUGET_URL', 'https://api.nuget.org')`NuGet's package content: whether a package exists,
    and how its author spells it (packages/vulns).`,
  packagistUrl: source('UPSTREAM_PACKAGIST_URL', 'https://repo.packagist.org')`Packagist's metadata: whether a package
    exists (packages/vulns).`,
});

export const NAMES = table('Domains, currencies, encyclopedias: base URLs, for a mirror or a test', [], {
  dns: source('UPSTREAM_DNS_URL', 'https://cloudflare-dns.com/dns-query')`DNS over HTTPS as JSON: ?name=...&type=...`,
  dnsFallback: source('UPSTREAM_DNS_FALLBACK_URL', 'https://dns.google/resolve')`Asked when the first one fails.`,
  rdapBootstrap: source('UPSTREAM_RDAP_BOOTSTRAP_URL', 'https://data.iana.org/rdap/dns.json')`IANA's list of servers.`,
  ecb: source('UPSTREAM_ECB_URL', 'https://www.ecb.europa.eu/stats/eurofxref')`The ECB's reference-rate files.`,
  frankfurter: source('UPSTREAM_FRANKFURTER_URL', 'https://api.frankfurter.dev/v1')`Asked when the ECB fails.`,
  wikipedia: source('UPSTREAM_WIKIPEDIA_URL', 'https://{lang}.wikipedia.org')`{lang}, if there is one, is the edition.`,
});

export const MARKETS = table('Rates: bitcoin in dollars, and USYC', [], {
  exchanges: {
    coinbase: source('UPSTREAM_COINBASE_URL', 'https://api.exchange.coinbase.com')`The first source of BTC/USD. Sats
      are priced at the median of three sources.`,
    kraken: source('UPSTREAM_KRAKEN_URL', 'https://api.kraken.com')`The second source of BTC/USD.`,
    bitstamp: source('UPSTREAM_BITSTAMP_URL', 'https://www.bitstamp.net')`The third source of BTC/USD.`,
  },
  usycToken: optional('USYC_TOKEN', address)`The USYC token on the chain. Default for the token and its oracle on Arc
    and its test network: Circle's.`,
  usycOracle: optional('USYC_ORACLE', address)`Its oracle: Chainlink's latestRoundData, getRoundData, decimals.`,
});

/** Circle's deployments on Arc and its test network: the token and its oracle. */
const USYC: Record<string, readonly `0x${string}`[]> = {
  arc: ['0x8a5D989Bbb96929F689B0200f435f53dA42bF490', '0x4BC8d5aCD3d040d2903dD9C5B7048520c6ff537A'],
  'arc-testnet': ['0xe9185F0c5F296Ed1797AaE4238D26CCaBEadb86C', '0x52b56c7642E71dc54714d879127d97cd0B3D4581'],
};

/** `usyc` is null where the chain has none. */
export function marketsOf(network: string, { exchanges, usycToken, usycOracle }: Settings<typeof MARKETS>) {
  const [token = null, oracle = null] = [usycToken ?? USYC[network]?.[0], usycOracle ?? USYC[network]?.[1]];
  return { exchanges, usyc: token && oracle && { token, oracle } };
}

export const MARKET = table('The market: other sellers’ routes, which anyone may submit', [], {
  probeIntervalMs: key('MARKET_PROBE_INTERVAL_SECONDS', scaled(1000, 60, 86_400), '3600')`Time between two calls to
    one listing, in seconds. The calls to all listings are spread over it.`,
  submitsPerHour: key('MARKET_SUBMITS_PER_HOUR', whole(), '20')`Addresses that one client (see Limits) may submit; 0 is
    off. For each the service calls another operator's server a few times.`,
  maxListings: key('MARKET_MAX_LISTINGS', whole(1, 10_000), '1000')`The most listings in total.`,
  maxPerHost: key('MARKET_MAX_PER_HOST', whole(1, 10_000), '30')`The most listings of one registered domain, all its
    hosts together. A suffix that several owners share (github.io, vercel.app) counts as one domain.`,
  timeoutMs: key('MARKET_TIMEOUT_MS', whole(100, 60_000), '8000')`For one call to a seller.`,
});

/** It lists entries on Arc: developers.circle.com/agent-stack/agent-marketplace/discovery-api */
const CIRCLE = 'https://api.circle.com/v2/x402/discovery/resources';
const isUrlOrOff = (text: string) => text === 'off' || httpUrl.safeParse(text).success;
const catalogueUrl = z.string().refine(isUrlOrOff, 'an http or https URL, or off');

export const DISCOVERY = table('Discovery: the search’s data about other sellers', [], {
  catalogueUrl: optional('UPSTREAM_CATALOGUE_URL', catalogueUrl)`A third-party catalogue's list of paid services, read
    hourly. Default on arc and arc-testnet: Circle's Agent Marketplace. off: none.`,
});

/** Null: no catalogue is read, as on a custom chain by default, because none lists entries there. */
export function discoveryOf(network: string, { catalogueUrl }: Settings<typeof DISCOVERY>) {
  const asked = catalogueUrl ?? (network === 'custom' ? 'off' : CIRCLE);
  return { catalogueUrl: asked === 'off' ? null : asked };
}
