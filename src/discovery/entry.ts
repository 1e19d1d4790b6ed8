import { z } from 'zod';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { describeParams, type ParamDoc } from '../catalogue/params.ts';
import { entriesOn, pathOn } from '../catalogue/paths.ts';
import { own, ownKeys, plainText } from '../lib/untrusted.ts';
import { parseHostName } from '../lib/url.ts';

// An entry is a payable route as `GET /v1/market/search` promises it. Others' text is untrusted; our own routes are
// entries too: those sold for USDC that have tags, each once, in the catalogue's order.

/** The sources of entries, the most trusted first, which wins ties and duplicates. */
export const SOURCES = ['own', 'market', 'catalogue'] as const;
export type Source = (typeof SOURCES)[number];

const priceUsd = z.string().regex(/^\d+(\.\d+)?$/);
const method = z.enum(['GET', 'POST']);

const param = z.strictObject({
  name: z.string(),
  in: z.enum(['path', 'query', 'body', 'header']).meta({ description: '`body`: a field of the JSON body of a POST' }),
  type: z.string().meta({ description: 'JSON Schema’s word; `any` when the seller says none' }),
  description: z.string(),
  required: z.boolean(),
  example: z.json().meta({ description: 'null when the seller gives none' }),
});

export const entrySchema = z.strictObject({
  url: z.string().meta({ description: 'A {placeholder} in it must be replaced' }),
  method,
  priceUsd: priceUsd.meta({ description: 'What the seller asked when last seen' }),
  name: z.string().meta({ description: 'The seller’s own name of the route' }),
  label: z.string().meta({ description: 'A short name for people' }),
  description: z.string(),
  params: z.array(param),
  payTo: z.string().meta({ description: 'Address of the seller' }),
  host: z.string(),
  network: z.string().meta({ description: 'CAIP-2; where it is paid here' }),
  rail: z.enum(['direct', 'gateway', 'channel']).meta({
    description: '`gateway`: the buyer needs a gateway deposit; `channel`: a payment channel',
  }),
  direct: z
    .strictObject({ url: z.string(), priceUsd })
    .nullable()
    .meta({ description: 'How a gateway entry can also be paid plainly on the chain; null when it cannot' }),
  body: z.json().meta({ description: 'An example of the JSON body of a POST; else null' }),
  source: z.enum(SOURCES),
  category: z.string(),
  site: z.string().meta({ description: 'The seller’s web site' }),
  networks: z.array(z.string()).meta({ description: 'All networks that the seller accepts' }),
  plainNetworks: z.array(z.string()).meta({ description: 'Those payable without the gateway' }),
  online: z.boolean().meta({
    description:
      'own: the service is ready; market: by the last hourly calls; catalogue: it is listed there, and was not called',
  }),
  score: z.number().meta({ description: 'Relevance; only comparable within one answer, 0 without a query' }),
});

export type Entry = z.output<typeof entrySchema>;

/** An entry as its source stores it. A search adds its relevance and whether it is online now. */
export type ListedEntry = Omit<Entry, 'score' | 'online'>;

export interface Listing {
  readonly entry: ListedEntry;
  /** Plain words, which are searched but not shown. */
  readonly keywords: string;
}

/** Stored copies are checked against it when they are read. */
export const listingSchema = z.object({ entry: entrySchema.omit({ score: true, online: true }), keywords: z.string() });

const MAX_URL = 1000;
/** A URL must escape them. `{` and `}` mark placeholders. */
const NOT_IN_URLS = /[\s\p{Cc}\p{Cf}"'<>\\^`|]/u;

interface ListedUrl {
  /** As written, so that a {placeholder} stays readable. */
  readonly url: string;
  /** With the port, unless it is the scheme's default. */
  readonly host: string;
  readonly origin: string;
  /** As written, without query and trailing slash. */
  readonly path: string;
}

/** An http(s) URL with a public host name, else null: `http://127.0.0.1/…` would send readers to their own machine. */
export function readListedUrl(value: unknown): ListedUrl | null {
  if (typeof value !== 'string' || value.length > MAX_URL || NOT_IN_URLS.test(value) || !URL.canParse(value))
    return null;
  const url = new URL(value);
  const isHttp = /^https?:\/\//i.test(value) && (url.protocol === 'https:' || url.protocol === 'http:');
  if (!isHttp || url.username !== '' || url.password !== '' || /%/.test(url.hostname)) return null;
  if ('fault' in parseHostName(url.hostname)) return null;
  const written = value.slice(value.indexOf('//') + 2);
  const path = (/\/[^?#]*/.exec(written)?.[0] ?? '/').replace(/\/+$/, '');
  return { url: value.replace(/#.*$/s, ''), host: url.host, origin: url.origin, path: path === '' ? '/' : path };
}

/** Host and path without letter case, trailing slash and placeholder names, so that addresses compare. */
export function placeOf(url: string): string {
  const parsed = new URL(url);
  const path = decodeBraces(parsed.pathname)
    .replace(/\{[^{}/]*\}|:[A-Za-z]\w*/g, '{}')
    .replace(/\/+$/, '');
  return `${parsed.host}${path.toLowerCase()}`;
}

export function decodeBraces(text: string): string {
  return text.replace(/%7B/gi, '{').replace(/%7D/gi, '}');
}

/** UTF-16 units of a field: what a list can show and a search should weigh. */
export const TEXT_LIMITS = { name: 100, label: 60, description: 500, category: 40, keywords: 400, word: 60 };

const MAX_TAGS = 5;
const MAX_DEPTH = 4;
const MAX_WORDS = 60;

export function readTags(value: unknown): string[] {
  const tags = listOf(value).slice(0, MAX_TAGS);
  return tags.map((tag) => plainText(tag, TEXT_LIMITS.category)).filter((tag) => tag !== '');
}

/** Tags, and the names of an answer's members as words: `windSpeed` becomes "wind speed". */
export function keywordsOf(tags: readonly string[], answer: unknown): string {
  const words = new Set(tags);
  const collect = (given: unknown, depth: number): void => {
    const value = Array.isArray(given) ? given[0] : given;
    for (const key of (ownKeys(value) ?? []).slice(0, MAX_WORDS)) {
      if (words.size >= MAX_WORDS) return;
      words.add(plainText(asWords(String(key)), TEXT_LIMITS.word));
      if (depth < MAX_DEPTH) collect(own(value, key), depth + 1);
    }
  };
  collect(answer, 1);
  return plainText([...words].join(' '), TEXT_LIMITS.keywords);
}

function asWords(name: string): string {
  return name
    .replace(/([a-z\d])([A-Z])/g, '$1 $2')
    .replace(/[_.-]+/g, ' ')
    .toLowerCase();
}

export function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

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
  return entriesOn(options.catalogue, 'paid').flatMap((endpoint) => {
    const { tags: keywords } = endpoint;
    return keywords === null ? [] : [{ entry: describeEntry(endpoint, options), keywords }];
  });
}

function describeEntry(endpoint: Endpoint<never>, options: OwnEntriesOptions): ListedEntry {
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

function describeParam({ name, required, description, schema }: ParamDoc): ListedEntry['params'][number] {
  const [example = null] = Array.isArray(schema.examples) ? schema.examples : [];
  return { name, in: 'query', type: String(schema.type ?? 'string'), description, required, example };
}
