import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { integerParam, parseParams, type Query } from '../catalogue/params.ts';
import type { Discovery } from '../discovery/discovery.ts';
import type { Market } from '../discovery/market.ts';
import { describeListing } from '../discovery/market-listing.ts';
import { BadParameter } from '../errors.ts';
import { createAnswerCache, sendAnswer } from '../http/cache.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { clientKey } from '../lib/limits/client.ts';

const PATH = '/v1/market';
const MAX_BODY_BYTES = 64 * 1024;
/** Every change of the list invalidates the cached bytes at once, so they can be kept for a minute. */
const CACHE_MS = 60_000;

const NOTE =
  'Routes of other sellers, listed by anyone and called hourly: an unpaid call must be answered 402 and be payable on this chain. Their names and descriptions are the sellers\u2019 own words. To list one: POST { "url": "https://\u2026" } to this path.';

const params = z.object({
  limit: integerParam({ min: 1, max: 500, default: 100, description: 'How many listings' }),
  offset: integerParam({ min: 0, max: 1_000_000, default: 0, description: 'How many to leave out first' }),
});
type Params = z.output<typeof params>;

/** What the route needs besides the market. */
export interface MarketRouteDeps {
  readonly market: Pick<Market, 'all' | 'revision' | 'submit'>;
  /** The search over the market's listings. */
  readonly discovery: Pick<Discovery, 'refresh'>;
  readonly clock: Clock;
  readonly network: string;
  readonly publicOrigin: string;
}

/** Mounts the market: the list of submitted routes, and the route that submits one. It belongs to the rate-limited group of free routes. */
export function mountMarket(app: FastifyInstance, deps: MarketRouteDeps): void {
  const { market, clock } = deps;
  const cache = createAnswerCache(clock, CACHE_MS, undefined, market.revision);
  app.route({
    method: ['GET', 'HEAD'],
    url: PATH,
    handler: async (request, reply) => {
      const given = parseParams({ params }, request.query as Query) as Params;
      const produce = async () => JSON.stringify(list(deps, given));
      sendAnswer(request, reply, await cache.answer(request.raw.url ?? '', given, produce));
      return reply;
    },
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
