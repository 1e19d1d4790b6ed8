import type { Endpoint } from '../catalogue/endpoint.ts';
import { describeParams, type ParamDoc } from '../catalogue/params.ts';
import { entriesOn, pathOn } from '../catalogue/paths.ts';
import type { Entry, Listing } from './entry.ts';

// Our own routes as listings: those sold for USDC, each once, in the catalogue's order.

/** It always fails, so searches do not offer it. */
const NOT_OFFERED = '/selftest/fail';

/** The category by the first segment of a path. A segment that is not here is its own category. */
const FAMILY: Record<string, string> = { fees: 'network', deploys: 'network', rpc: 'network', fx: 'network' };

interface OwnEntriesOptions {
  readonly catalogue: readonly Endpoint<never>[];
  readonly network: string;
  readonly payTo: string;
  readonly publicOrigin: string;
  railOf(endpoint: Endpoint<never>): Entry['rail'];
}

export function createOwnListings(options: OwnEntriesOptions): Listing[] {
  return entriesOn(options.catalogue, 'paid')
    .filter(({ path }) => path !== NOT_OFFERED)
    .map((endpoint) => ({
      entry: describeEntry(endpoint, options),
      keywords: Object.hasOwn(OWN_TAGS, endpoint.path) ? (OWN_TAGS[endpoint.path] ?? '') : '',
    }));
}

function describeEntry(endpoint: Endpoint<never>, options: OwnEntriesOptions): Listing['entry'] {
  const { network, payTo, publicOrigin } = options;
  const rail = options.railOf(endpoint);
  const [first = ''] = endpoint.path.slice(1).split('/');
  return {
    url: publicOrigin + pathOn(endpoint, 'paid'),
    method: 'GET',
    priceUsd: endpoint.price?.usd ?? '',
    name: endpoint.path.slice(1),
    label: endpoint.label,
    description: endpoint.summary,
    params: describeParams(endpoint).map(describeParam),
    payTo,
    host: new URL(publicOrigin).host,
    network,
    rail,
    direct: null,
    body: null,
    source: 'own',
    category: FAMILY[first] ?? first,
    site: publicOrigin,
    networks: [network],
    plainNetworks: rail === 'gateway' ? [] : [network],
  };
}

function describeParam({ name, required, description, schema }: ParamDoc): Listing['entry']['params'][number] {
  const [example = null] = Array.isArray(schema.examples) ? schema.examples : [];
  return { name, in: 'query', type: String(schema.type ?? 'string'), description, required, example };
}

/** Words that people use for our routes. They are searched as sellers' tags are. */
export const OWN_TAGS: Readonly<Record<string, string>> = {
  '/fees/forecast':
    'gas price prediction outlook, fees going up or down, rising, falling, cheap or expensive, in the next hour, ' +
    'when to send',
  '/fees/estimate': 'gas calculator, cost of sending a transaction in dollars',
  '/deploys/history': 'new smart contracts, created, launched, deployed, deployers, today, recently',
  '/rpc/health': 'blockchain node status, down, outage, uptime, fastest provider, monitoring',
  '/fx/execution': 'swap, slippage, vwap, dex, liquidity, spread, euro stablecoin EURC, trading volume',
  '/chain/wallet': 'account balance, holdings, how much USDC somebody has, contract or person, nonce',
  '/chain/token': 'coin, token contract, metadata, ticker, erc20 supply',
  '/chain/tx':
    'tx receipt lookup, block explorer, payment confirmed, went through, failed or reverted, who sent, who received',
  '/web/extract':
    'scrape, scraper, reader mode, readable article without ads, website content, html to text, url to text',
  '/web/check':
    'is a website up or down, uptime monitor, follow redirects of a short link, hsts, csp, ssl certificate expiry, ' +
    'server speed',
  '/packages/npm': 'javascript library, node module, typescript, package manager',
  '/packages/pypi': 'python library, python version, pip install, module',
  '/packages/vulns':
    'CVE lookup, security holes, vulnerability, exploit, malware, dependency audit, ' +
    'npm, pypi, go, rust, maven, rubygems, nuget, packagist',
  '/domains/dns': 'resolve a hostname to an ip, mx mail server, txt spf dmarc lookup, nameserver, dig, nslookup',
  '/domains/whois': 'who owns a domain, owner, free to register, available, when it expires',
  '/currency/rates': 'exchange rates, forex, ECB, euro, dollar, yen, pound, franc, historical, past date',
  '/currency/convert': 'currency converter, money exchange calculator, euro, dollar, yen, pound, franc',
  '/wiki/search': 'find wikipedia pages about a topic, knowledge',
  '/wiki/summary': 'explain a topic, short explanation, what is it, who is it, intro, overview, facts',
  '/wiki/article': 'whole wikipedia page, full text, read an entry in full',
};
