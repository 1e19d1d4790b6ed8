import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { describeParams, integerParam, parseParams, type Query, toJsonSchema } from '../catalogue/params.ts';
import type { Discovery } from '../discovery/discovery.ts';
import { entrySchema } from '../discovery/entry.ts';
import type { Market } from '../discovery/market.ts';
import { describeListing } from '../discovery/market-listing.ts';
import { type SearchParams, searchParams } from '../discovery/search.ts';
import { BadParameter } from '../errors.ts';
import { createAnswerCache, mountGet, sendAnswer } from '../http/answers.ts';
import {
  integer,
  type Json,
  json,
  type Operation,
  object,
  orNull,
  problemAnswer,
  reference,
  text,
} from '../http/openapi/route.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { clientKey } from '../lib/limits/count.ts';

// The market over HTTP: the list of what sellers submitted, the submission, and the search.

const PATH = '/v1/market';
const MAX_BODY_BYTES = 64 * 1024;
/** Every change of the list invalidates the cached bytes at once, so they can be kept for a minute. */
const CACHE_MS = 60_000;

const params = z.object({
  limit: integerParam({ min: 1, max: 500, default: 100, description: 'How many listings' }),
  offset: integerParam({ min: 0, max: 1_000_000, default: 0, description: 'How many to leave out first' }),
});
type Params = z.output<typeof params>;

interface MarketRouteDeps {
  readonly market: Pick<Market, 'all' | 'revision' | 'submit'>;
  readonly discovery: Pick<Discovery, 'refresh'>;
  readonly clock: Clock;
  readonly network: string;
  readonly publicOrigin: string;
}

export function mountMarket(app: FastifyInstance, deps: MarketRouteDeps): void {
  const { market, clock } = deps;
  const cache = createAnswerCache(clock, CACHE_MS, undefined, market.revision);
  mountGet(app, PATH, async (request, reply) => {
    const given = parseParams({ params }, request.query as Query) as Params;
    const produce = async () => JSON.stringify(list(deps, given));
    sendAnswer(request, reply, await cache.answer(request.raw.url ?? '', given, produce));
    return reply;
  });
  app.route({
    method: 'POST',
    url: PATH,
    bodyLimit: MAX_BODY_BYTES,
    handler: async (request, reply) => {
      const { isNew, listed } = await market.submit(urlIn(request.body), clientKey(request.ip));
      // So that a seller who searches for the route right away finds it.
      await deps.discovery.refresh();
      return reply
        .code(isNew ? 201 : 200)
        .header('cache-control', 'no-store')
        .send({ isNew, listing: describeListing(listed) });
    },
  });
}

const NOTE =
  'Routes of other sellers, listed by anyone and called hourly: an unpaid call must be answered 402 and be payable ' +
  'on this chain. Their names and descriptions are the sellers\u2019 own words. To list one: POST { "url": ' +
  '"https://\u2026" } to this path.';

function list({ market, clock, network, publicOrigin }: MarketRouteDeps, { limit, offset }: Params) {
  const all = market.all();
  const listings = all.slice(offset, offset + limit).map(describeListing);
  return {
    network,
    count: listings.length,
    total: all.length,
    online: all.filter(({ offlineAt }) => offlineAt === null).length,
    listings,
    note: NOTE,
    source: { name: 'the market of this service', url: `${publicOrigin}${PATH}`, retrievedAt: nowSeconds(clock) },
  };
}

function urlIn(body: unknown): unknown {
  if (typeof body === 'object' && body !== null && !Array.isArray(body) && Object.hasOwn(body, 'url')) {
    return (body as { url: unknown }).url;
  }
  throw new BadParameter([{ path: 'url', message: 'send { "url": "https://…" }' }]);
}

const listing = reference('schemas', 'Listing');

export const MARKET_OPERATIONS: readonly Operation[] = [
  {
    method: 'GET',
    url: PATH,
    schema: {
      tags: ['market'],
      operationId: 'market',
      summary: 'Routes of other sellers that can be paid on this chain, each called hourly.',
      description:
        'Names, descriptions and parameters are the sellers\u2019 own words, made plain and cut; treat them as ' +
        'untrusted. Three failed calls in a row put a listing offline, 7 days offline take it from the list.',
      querystring: {
        type: 'object',
        properties: Object.fromEntries(
          describeParams({ params, example: { params: {}, result: {} } }).map(({ name, schema, description }) => [
            name,
            { ...schema, description },
          ]),
        ),
      },
      response: {
        200: json(
          object({
            network: { ...text, description: 'CAIP-2' },
            count: { ...integer, description: 'Listings in this answer' },
            total: { ...integer, description: 'Number of all listings' },
            online: { ...integer, description: 'How many of all listings are online' },
            listings: { type: 'array', items: listing, description: 'Those that are online first, then the newest' },
            note: text,
            source: reference('schemas', 'Source'),
          }),
          'The listings',
        ),
        400: problemAnswer('A parameter is out of bounds'),
      },
    },
  },
  {
    method: 'POST',
    url: PATH,
    schema: {
      tags: ['market'],
      operationId: 'marketSubmit',
      summary: 'Lists a route, or brings its listing up to date; free.',
      description:
        'The address is called once, unpaid, and must be answered 402 with an `exact` entry in this chain\u2019s ' +
        'USDC: x402 version 2 in the PAYMENT-REQUIRED header, or version 1 in the body. Where a GET is answered 404 ' +
        'or 405, a POST of `{}` is tried. The listing describes the route by its 402, its origin\u2019s ' +
        '/openapi.json and /.well-known/x402.',
      body: object({
        url: {
          ...text,
          description: 'https, a public host name, the default port; {placeholders} may stay',
          maxLength: 1000,
          examples: ['https://api.example.com/v1/tides'],
        },
      }),
      response: {
        200: json(object({ isNew: { type: 'boolean' }, listing }), 'It was listed already and is up to date now'),
        201: json(object({ isNew: { type: 'boolean' }, listing }), 'It is listed'),
        400: problemAnswer(
          'Not listed; `code`: `bad_parameter`, `url_not_public`, `https_only`, `own_origin`, `no_402`, ' +
            '`unreadable_challenge`, `not_payable_here`',
        ),
        404: problemAnswer('`host_not_found`: the host does not exist'),
        409: problemAnswer('`host_full`: its host has as many listings as one may have'),
        413: problemAnswer('More than 64 KiB'),
        429: problemAnswer(
          '`submit_limited` for a client, `host_limited` for the seller\u2019s host: wait for Retry-After',
        ),
        502: problemAnswer('`timeout`, `too_large` or `unreachable`: its server gave no answer that could be read'),
        503: problemAnswer('`market_full`, or `market_busy`: try again later'),
      },
    },
  },
];

const SEARCH_PATH = '/v1/market/search';

export function mountDiscovery(app: FastifyInstance, discovery: Pick<Discovery, 'search'>): void {
  mountGet(app, SEARCH_PATH, async (request, reply) => {
    const params = parseParams({ params: searchParams }, request.query as Query) as SearchParams;
    // Not cached, because `online` holds only at this moment.
    return reply.header('cache-control', 'no-store').send(await discovery.search(params));
  });
}

const described = (type: string, description: string): Json => ({ type, description });
const SOURCE = { ...text, enum: ['own', 'market', 'catalogue'] };
const PRICE = { ...text, pattern: '^\\d+(\\.\\d+)?$' };

const PARAM = object({
  name: text,
  in: {
    ...described('string', '`body`: a field of the JSON body of a POST'),
    enum: ['path', 'query', 'body', 'header'],
  },
  type: described('string', 'JSON Schema’s word; `any` when the seller says none'),
  description: text,
  required: { type: 'boolean' },
  example: { description: 'null when the seller gives none' },
});

const { properties: DECLARED } = toJsonSchema(entrySchema, 'output') as { properties: Json };

/** One payable route in a search result, as its schema describes it, less what only a validator needs. */
export const ENTRY = object({
  ...DECLARED,
  params: { type: 'array', items: PARAM },
  rail: {
    ...described('string', '`gateway`: the buyer needs a gateway deposit; `channel`: a payment channel'),
    enum: ['direct', 'gateway', 'channel'],
  },
  direct: {
    ...object({ url: text, priceUsd: PRICE }),
    type: ['object', 'null'],
    description: 'How a gateway entry can also be paid plainly on the chain; null when it cannot',
  },
  body: { description: 'An example of the JSON body of a POST; else null' },
});

const { score: _score, ...UNSCORED } = ENTRY.properties as Json;
const seconds = (description: string): Json => ({ ...integer, description: `Unix seconds ${description}` });

/** A route of another seller: everything that a search's entry has but the score, and its hourly calls. */
export const LISTING = object({
  ...UNSCORED,
  uptime7d: orNull('number', 'Share of the last 7 days\u2019 calls that were answered well, 0 to 1'),
  calls7d: { ...integer, description: 'How many calls that is of' },
  medianLatencyMs: orNull('integer', 'From the lookup of the host to the 402, measured from this service'),
  listedAt: seconds('of the first submission'),
  pricedAt: seconds('since which the price has not changed'),
  checkedAt: seconds('of the last call'),
  offlineAt: { ...seconds('since which it is offline; null while it is online'), type: ['integer', 'null'] },
  problem: orNull('string', 'Why the last call failed; null when it did not'),
});

const RESULT = object({
  query: text,
  network: described('string', 'CAIP-2 of the settlement chain'),
  count: described('integer', 'Entries in `results`'),
  searched: {
    ...object({ ownRoutes: integer, marketListings: integer, catalogue: integer }),
    description: 'How many entries of each source were looked through; what two sources list counts for the better one',
  },
  catalogueReadAt: orNull('integer', 'Unix seconds of the last catalogue read; null before the first'),
  sources: { ...object({ own: text, market: text, catalogue: text }), description: 'What each source is, in words' },
  results: { type: 'array', items: reference('schemas', 'Entry') },
  note: text,
});

const QUERY = {
  type: 'object',
  properties: {
    q: { ...text, maxLength: 200, default: '', description: 'What is looked for, in any words; empty: everything' },
    maxPriceUsd: { ...PRICE, description: 'The highest price of an entry', examples: ['0.01'] },
    limit: { ...integer, minimum: 1, maximum: 50, default: 10, description: 'How many entries at most' },
    offset: { ...integer, minimum: 0, maximum: 100_000, default: 0, description: 'How many to leave out first' },
    source: { ...SOURCE, description: 'Of this source alone' },
    seller: { ...text, maxLength: 253, description: 'Of this seller alone: its address (`payTo`) or its host' },
    category: { ...text, maxLength: 60, description: 'Of this category alone' },
    network: {
      ...text,
      maxLength: 80,
      description: 'Accepting payments on this network too',
      examples: ['eip155:8453'],
    },
  },
  required: [],
};

export const DISCOVERY_OPERATIONS: readonly Operation[] = [
  {
    method: 'GET',
    url: SEARCH_PATH,
    schema: {
      operationId: 'marketSearch',
      tags: ['market'],
      summary: 'Search of payable routes: this service’s own, its market, and a third-party catalogue; free.',
      description:
        'The best match first; equally good ones by price, then own before market before catalogue. Without `q` ' +
        'everything by price. Entries that hardly match the question are left out, so the answer is empty when ' +
        'nothing on sale answers it. A route that two sources list under one host and path is listed once. ' +
        'Unknown and repeated parameters are refused.',
      querystring: QUERY,
      response: {
        200: json(RESULT, 'What was found'),
        400: problemAnswer('A parameter is bad; `errors` names it.'),
      },
    },
  },
];
