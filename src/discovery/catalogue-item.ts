import { own, ownKeys, plainText } from '../lib/untrusted.ts';
import { type Payable, readAccepts } from './accepts.ts';
import type { Listing } from './entry.ts';
import { readBody, readParams } from './listed-params.ts';
import { readListedUrl } from './listed-url.ts';

const MAX_NAME = 100;
const MAX_DESCRIPTION = 500;
const MAX_CATEGORY = 60;
const MAX_KEYWORDS = 400;
const MAX_TAGS = 20;

/**
 * Maps one item of a catalogue to a listing. Null when it is not payable on our chain, has no usable address, or has a method other than GET and
 * POST.
 * Reads Circle's shape, Coinbase's and x402 version 1's. All of it is untrusted text.
 */
export function readCatalogueItem(item: unknown, payable: Payable): Listing | null {
  const accepts = own(item, 'accepts');
  const terms = readAccepts(accepts, payable);
  const first = Array.isArray(accepts) ? accepts[0] : undefined;
  const address = readListedUrl(own(item, 'resource') ?? own(first, 'resource'));
  if (terms === null || address === null) return null;
  const metadata = own(item, 'metadata');
  const provider = own(metadata, 'provider');
  const bazaar = own(own(own(item, 'extensions'), 'bazaar'), 'info');
  const schema = own(first, 'outputSchema');
  const input = [own(metadata, 'input'), own(bazaar, 'input'), own(schema, 'input')].find(isObject);
  const method = readMethod(own(metadata, 'method') ?? own(input, 'method'));
  if (method === null) return null;
  const text = (max: number, ...candidates: unknown[]) =>
    candidates.map((one) => plainText(one, max)).find((one) => one !== '') ?? '';

  const params = readParams(input, method, address.url);
  const { plainPriceUsd, ...paid } = terms;
  return {
    entry: {
      url: address.url,
      method,
      priceUsd: paid.priceUsd,
      name: text(MAX_NAME, own(metadata, 'name'), own(metadata, 'path'), address.path),
      label: text(MAX_NAME, own(provider, 'name'), own(item, 'serviceName'), address.host),
      description: text(
        MAX_DESCRIPTION,
        own(metadata, 'description'),
        own(item, 'description'),
        own(first, 'description'),
        own(provider, 'description'),
      ),
      params,
      payTo: paid.payTo,
      host: address.host,
      network: payable.network,
      rail: paid.rail,
      direct: plainPriceUsd === null ? null : { url: address.url, priceUsd: plainPriceUsd },
      body: method === 'POST' ? readBody(input, params) : null,
      source: 'catalogue',
      category: text(MAX_CATEGORY, own(provider, 'category'), own(metadata, 'category')),
      site: readListedUrl(own(provider, 'website'))?.url ?? address.origin,
      networks: paid.networks,
      plainNetworks: paid.plainNetworks,
    },
    keywords: text(MAX_KEYWORDS, keywordsOf(item, provider, own(metadata, 'output'))),
  };
}

/** A missing method means GET in the known catalogues. */
function readMethod(method: unknown): 'GET' | 'POST' | null {
  if (method === undefined || method === null) return 'GET';
  const named = typeof method === 'string' ? method.toUpperCase() : '';
  return named === 'GET' || named === 'POST' ? named : null;
}

/** Search keywords: the tags, the provider's description of itself, and the names of the answer's members. */
function keywordsOf(item: unknown, provider: unknown, output: unknown): string {
  const tags = [own(provider, 'tags'), own(item, 'tags')].find(Array.isArray) ?? [];
  const members = ownKeys(own(output, 'properties')) ?? [];
  const words = [...tags.slice(0, MAX_TAGS), own(provider, 'description'), ...members.slice(0, MAX_TAGS)];
  return words.filter((word) => typeof word === 'string').join(' ');
}

function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
