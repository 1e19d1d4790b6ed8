import Fastify from 'fastify';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { describeParams } from '../../src/catalogue/params.ts';
import { loadConfig } from '../../src/config.ts';
import { createDiscovery, NO_LISTINGS } from '../../src/discovery/discovery.ts';
import { entrySchema } from '../../src/discovery/entry.ts';
import { NO_CATALOGUE } from '../../src/discovery/foreign-catalogue.ts';
import { searchParams } from '../../src/discovery/search.ts';
import { createMethodRefusals, guardRequests } from '../../src/http/guard-requests.ts';
import { installErrorHandlers } from '../../src/http/problems.ts';
import { serverOptions } from '../../src/http/server-options.ts';
import { createLogger } from '../../src/lib/common.ts';
import { mountSearch, SEARCH } from '../../src/routes/market.ts';
import { createManualClock } from '../support/manual-clock.ts';
import { usdcRoutes } from '../support/prices.ts';
import { listing, NETWORK, ownListings } from '../unit/discovery/world.ts';
import { captureLog, ENV } from './harness.ts';

const URL_OF_SEARCH = '/v1/market/search';
const { lines, destination } = captureLog();
const log = createLogger('debug', destination);
const app = Fastify(serverOptions(loadConfig(ENV), log));
const own = ownListings();
const discovery = createDiscovery({
  own,
  market: NO_LISTINGS,
  catalogue: {
    ...NO_CATALOGUE,
    listings: () => [listing({ url: 'https://a.example/x', description: '"quoted" & plain', rail: 'gateway' })],
    readAtMs: () => 1_800_000_000_999,
  },
  readsCatalogue: () => false,
  network: NETWORK,
  isReady: async () => true,
  clock: createManualClock(1_800_000_000_000),
  log,
});

beforeAll(async () => {
  guardRequests(
    app,
    log,
    createMethodRefusals(app, () => undefined),
  );
  installErrorHandlers(
    app,
    log,
    () => undefined,
    () => 'no such route',
  );
  mountSearch(app, { discovery });
  await discovery.start();
});
afterAll(async () => {
  await app.close();
  await discovery.stop();
});

const get = async (query: string) => {
  const answer = await app.inject({ url: URL_OF_SEARCH + query });
  return { status: answer.statusCode, headers: answer.headers, body: answer.json() };
};

describe('GET /v1/market/search', () => {
  test('answers with the members that the search promises', async () => {
    const { status, headers, body } = await get('?q=wallet+balance&limit=2');
    expect([status, headers['content-type'], headers['cache-control']]).toEqual([
      200,
      'application/json; charset=utf-8',
      'no-store',
    ]);
    expect(Object.keys(body)).toEqual([
      ...['query', 'network', 'count', 'searched', 'catalogueReadAt', 'sources', 'results', 'note'],
    ]);
    expect(body).toMatchObject({
      query: 'wallet balance',
      network: NETWORK,
      count: body.results.length,
      catalogueReadAt: 1_800_000_000,
      searched: { ownRoutes: ownListings().length, marketListings: 0, catalogue: 1 },
      sources: { own: expect.any(String), market: expect.any(String), catalogue: expect.any(String) },
    });
    expect(body.results[0].name).toBe('chain/wallet');
    for (const entry of body.results) expect(entrySchema.parse(entry)).toEqual(entry);
  });

  test('without parameters lists ten by price', async () => {
    const { body } = await get('');
    expect([body.query, body.count]).toEqual(['', 10]);
    expect(body.results.slice(0, 2).map(({ priceUsd }: { priceUsd: string }) => priceUsd)).toEqual(
      usdcRoutes()
        .slice(0, 2)
        .map(({ price }) => price.usd),
    );
  });

  test('refuses its own parameters by name, all of them at once', async () => {
    const { status, body } = await get(`?q=${'x'.repeat(201)}&limit=0&maxPriceUsd=free&source=theirs&seller=&network=`);
    expect([status, body.code, body.charged]).toEqual([400, 'bad_parameter', false]);
    const names = body.errors.map(({ path }: { path: string }) => path);
    expect(names.sort()).toEqual(['limit', 'maxPriceUsd', 'network', 'q', 'seller', 'source']);
  });

  test('refuses unknown and repeated parameters by name', async () => {
    const { status, body } = await get('?utm_source=x&__proto__=y&q=wallet&q=tides');
    const names = body.errors.map(({ path }: { path: string }) => path);
    expect([status, names.sort()]).toEqual([400, ['__proto__', 'q', 'utm_source']]);
  });

  test.each(['%22', '%22%2A%28', 'NEAR%28', '%00', '%F0%9F%A6%86', "'%3B--", 'name%3Awallet', '%5C', '%ED%A0%80'])(
    'q=%s has no syntax and never causes a fault of ours',
    async (q) => {
      const { status } = await get(`?q=${q}`);
      expect([200, 400]).toContain(status);
      expect(lines.filter(({ level }) => Number(level) >= 50)).toEqual([]);
    },
  );

  test('HEAD says the same without a body, and every other method is 405', async () => {
    const head = await app.inject({ method: 'HEAD', url: `${URL_OF_SEARCH}?q=wallet` });
    expect([head.statusCode, head.body]).toEqual([200, '']);
    expect((await app.inject({ method: 'HEAD', url: `${URL_OF_SEARCH}?limit=0` })).statusCode).toBe(400);
    for (const method of ['POST', 'PUT', 'DELETE'] as const) {
      const answer = await app.inject({ method, url: URL_OF_SEARCH });
      expect([answer.statusCode, answer.headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS']);
    }
  });
});

describe('its declaration', () => {
  test('has the members of an entry and of the answer, and no other', async () => {
    const { shape } = SEARCH.answers[200].schema;
    expect(Object.keys(shape)).toEqual(Object.keys((await get('')).body));
    expect(shape.results.element).toBe(entrySchema);
    expect(Object.keys(SEARCH.query.shape)).toEqual(Object.keys(searchParams.shape));
  });

  test('states the bounds that the search keeps', () => {
    const params = describeParams({ params: SEARCH.query, example: { params: {}, result: {} } });
    const bounds = params.map(({ name, schema }) => ({ name, ...schema }) as Bounds);
    expect(bounds.filter(({ maxLength, maximum }) => maxLength || maximum)).toHaveLength(6);
    for (const { name, maxLength, maximum } of bounds) {
      const accepts = (value: string) => searchParams.safeParse({ [name]: value }).success;
      if (maxLength)
        expect([name, accepts('x'.repeat(maxLength)), accepts('x'.repeat(maxLength + 1))]).toEqual([name, true, false]);
      if (maximum) expect([name, accepts(`${maximum}`), accepts(`${maximum + 1}`)]).toEqual([name, true, false]);
    }
    const defaults = bounds.flatMap((one) => ('default' in one ? [[one.name, one.default]] : []));
    expect(searchParams.parse({})).toEqual(Object.fromEntries(defaults));
  });
});

interface Bounds {
  readonly name: string;
  readonly default?: unknown;
  readonly maximum?: number;
  readonly maxLength?: number;
}
