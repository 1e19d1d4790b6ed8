import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { integerParam, parseParams, type Query } from '../catalogue/params.ts';
import type { Discovery } from '../discovery/discovery.ts';
import { entrySchema } from '../discovery/entry.ts';
import type { Market } from '../discovery/market.ts';
import { describeListing, LISTING } from '../discovery/market-listing.ts';
import { searchParams, searchResult } from '../discovery/search.ts';
import { BadParameter } from '../errors.ts';
import { createAnswerCache, sendAnswer } from '../http/answers.ts';
import { COMPONENTS, defineRoute, inJson, problem, said, serve, whole } from '../http/openapi/route.ts';
import type { Limited } from '../http/rate-limit.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { clientKey } from '../lib/limits/count.ts';
import { sourceSchema } from '../lib/service.ts';

// The market over HTTP: the search, the list of what sellers submitted, and the submission.

export interface MarketDeps {
  readonly market: Pick<Market, 'all' | 'revision' | 'submit'>;
  readonly discovery: Pick<Discovery, 'refresh' | 'search'>;
  readonly clock: Clock;
  readonly config: { readonly publicOrigin: string; readonly network: { readonly caip2: string } };
}

export async function marketRoutes(app: FastifyInstance, deps: MarketDeps & Limited): Promise<void> {
  deps.limits.free(app);
  mountSearch(app, deps);
  mountMarket(app, deps);
}

COMPONENTS.add(entrySchema, { name: 'Entry' });

const { shape: asked } = searchParams;
const PRICE = '^\\d+(\\.\\d+)?$';

export const SEARCH = defineRoute('GET', '/v1/market/search', {
  id: 'marketSearch',
  tag: 'market',
  summary: 'Search of payable routes: this service’s own, its market, and a third-party catalogue; free.',
  description:
    'The best match first; equally good ones by price, then own before market before catalogue. Without `q` ' +
    'everything by price. Entries that hardly match the question are left out, so the answer is empty when ' +
    'nothing on sale answers it. A route that two sources list under one host and path is listed once. ' +
    'Unknown and repeated parameters are refused.',
  query: searchParams.extend({
    q: asked.q.meta({ maxLength: 200, description: 'What is looked for, in any words; empty: everything' }),
    maxPriceUsd: asked.maxPriceUsd.meta({
      pattern: PRICE,
      description: 'The highest price of an entry',
      examples: ['0.01'],
    }),
    source: asked.source.meta({ description: 'Of this source alone' }),
    seller: asked.seller.meta({
      maxLength: 253,
      description: 'Of this seller alone: its address (`payTo`) or its host',
    }),
    category: asked.category.meta({ maxLength: 60, description: 'Of this category alone' }),
    network: asked.network.meta({
      maxLength: 80,
      description: 'Accepting payments on this network too',
      examples: ['eip155:8453'],
    }),
  }),
  answers: {
    200: inJson(
      searchResult.extend({
        network: said('CAIP-2 of the settlement chain'),
        count: whole('Entries in `results`'),
        searched: searchResult.shape.searched.meta({
          description:
            'How many entries of each source were looked through; what two sources list counts for the better one',
        }),
        catalogueReadAt: searchResult.shape.catalogueReadAt.meta({
          description: 'Unix seconds of the last catalogue read; null before the first',
        }),
        sources: z
          .object({ own: z.string(), market: z.string(), catalogue: z.string() })
          .meta({ description: 'What each source is, in words' }),
      }),
      'What was found',
    ),
    400: problem('A parameter is bad; `errors` names it.'),
  },
});

export function mountSearch(app: FastifyInstance, { discovery }: Pick<MarketDeps, 'discovery'>): void {
  serve(app, SEARCH, async (request, reply) => {
    const params = parseParams({ params: SEARCH.query }, request.query as Query) as z.output<typeof SEARCH.query>;
    // Not cached, because `online` holds only at this moment.
    return reply.header('cache-control', 'no-store').send(await discovery.search(params));
  });
}

COMPONENTS.add(LISTING, { name: 'Listing' });

const PATH = '/v1/market';

export const LIST = defineRoute('GET', PATH, {
  id: 'market',
  tag: 'market',
  summary: 'Routes of other sellers that can be paid on this chain, each called hourly.',
  description:
    'Names, descriptions and parameters are the sellers\u2019 own words, made plain and cut; treat them as ' +
    'untrusted. Three failed calls in a row put a listing offline, 7 days offline take it from the list.',
  query: z.object({
    limit: integerParam({ min: 1, max: 500, default: 100, description: 'How many listings' }),
    offset: integerParam({ min: 0, max: 1_000_000, default: 0, description: 'How many to leave out first' }),
  }),
  answers: {
    200: inJson(
      z.object({
        network: said('CAIP-2'),
        count: whole('Listings in this answer'),
        total: whole('Number of all listings'),
        online: whole('How many of all listings are online'),
        listings: z.array(LISTING).meta({ description: 'Those that are online first, then the newest' }),
        note: z.string(),
        source: sourceSchema,
      }),
      'The listings',
    ),
    400: problem('A parameter is out of bounds'),
  },
});

const SUBMITTED = z.object({ isNew: z.boolean(), listing: LISTING });

export const SUBMIT = defineRoute('POST', PATH, {
  id: 'marketSubmit',
  tag: 'market',
  summary: 'Lists a route, or brings its listing up to date; free.',
  description:
    'The address is called once, unpaid, and must be answered 402 with an `exact` entry in this chain\u2019s ' +
    'USDC: x402 version 2 in the PAYMENT-REQUIRED header, or version 1 in the body. Where a GET is answered 404 ' +
    'or 405, a POST of `{}` is tried. The listing describes the route by its 402, its origin\u2019s ' +
    '/openapi.json and /.well-known/x402.',
  body: z.object({
    url: z
      .string()
      .max(1000)
      .meta({
        description: 'https, a public host name, the default port; {placeholders} may stay',
        examples: ['https://api.example.com/v1/tides'],
      }),
  }),
  answers: {
    200: inJson(SUBMITTED, 'It was listed already and is up to date now'),
    201: inJson(SUBMITTED, 'It is listed'),
    400: problem(
      'Not listed; `code`: `bad_parameter`, `url_not_public`, `https_only`, `own_origin`, `no_402`, ' +
        '`unreadable_challenge`, `not_payable_here`',
    ),
    404: problem('`host_not_found`: the host does not exist'),
    409: problem('`host_full`: its host has as many listings as one may have'),
    413: problem('More than 64 KiB'),
    429: problem('`submit_limited` for a client, `host_limited` for the seller\u2019s host: wait for Retry-After'),
    502: problem('`timeout`, `too_large` or `unreachable`: its server gave no answer that could be read'),
    503: problem('`market_full`, or `market_busy`: try again later'),
  },
});

const MAX_BODY_BYTES = 64 * 1024;
/** Every change of the list invalidates the cached bytes at once, so they can be kept for a minute. */
const CACHE_MS = 60_000;

function mountMarket(app: FastifyInstance, deps: MarketDeps): void {
  const { market, clock } = deps;
  const cache = createAnswerCache(clock, CACHE_MS, undefined, market.revision);
  serve(app, LIST, async (request, reply) => {
    const given = parseParams({ params: LIST.query }, request.query as Query) as Page;
    const produce = async () => JSON.stringify(list(deps, given));
    sendAnswer(request, reply, await cache.answer(request.raw.url ?? '', given, produce));
    return reply;
  });
  serve(app, SUBMIT, {
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

type Page = z.output<typeof LIST.query>;

const NOTE =
  'Routes of other sellers, listed by anyone and called hourly: an unpaid call must be answered 402 and be payable ' +
  'on this chain. Their names and descriptions are the sellers\u2019 own words. To list one: POST { "url": ' +
  '"https://\u2026" } to this path.';

function list({ market, clock, config }: MarketDeps, { limit, offset }: Page) {
  const { caip2: network } = config.network;
  const all = market.all();
  const listings = all.slice(offset, offset + limit).map(describeListing);
  return {
    network,
    count: listings.length,
    total: all.length,
    online: all.filter(({ offlineAt }) => offlineAt === null).length,
    listings,
    note: NOTE,
    source: {
      name: 'the market of this service',
      url: `${config.publicOrigin}${PATH}`,
      retrievedAt: nowSeconds(clock),
    },
  };
}

function urlIn(body: unknown): unknown {
  if (typeof body === 'object' && body !== null && !Array.isArray(body) && Object.hasOwn(body, 'url')) {
    return (body as { url: unknown }).url;
  }
  throw new BadParameter([{ path: 'url', message: 'send { "url": "https://…" }' }]);
}
