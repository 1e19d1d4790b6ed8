import { request as httpRequest } from 'node:http';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import { LISTING } from '../../src/discovery/market-listing.ts';
import { LIST, SUBMIT } from '../../src/routes/market.ts';
import { accept, challenge, NETWORK, type OpenMarket, ORIGIN, openMarket } from '../support/market/market.ts';
import { createTestApp, listen } from './harness.ts';

const X = 'https://a.good.example/x';
let open: OpenMarket;
let app: Awaited<ReturnType<typeof createTestApp>>['app'];
beforeEach(async () => {
  open = await openMarket({
    answers: { '/x': challenge(), '/y': challenge([accept({ amount: '10' })]), '/page': { body: '<p>' } },
  });
  ({ app } = await createTestApp({ market: open.market, env: { PUBLIC_ORIGIN: ORIGIN } }));
});
afterEach(async () => {
  await app.close();
  await open.close();
});

const post = (payload: string | object, headers: Record<string, string> = { 'content-type': 'application/json' }) =>
  app.inject({ method: 'POST', url: '/v1/market', headers, payload });

describe('POST /v1/market', () => {
  test('lists a route with 201, and updates it with 200', async () => {
    const first = await post({ url: X });
    expect([first.statusCode, first.headers['cache-control'], first.json().isNew]).toEqual([201, 'no-store', true]);
    expect(first.json().listing).toMatchObject({
      url: X,
      priceUsd: '0.002',
      source: 'market',
      online: true,
      uptime7d: 1,
      calls7d: 1,
      medianLatencyMs: expect.any(Number),
      listedAt: 1_800_000_000,
      pricedAt: 1_800_000_000,
      checkedAt: 1_800_000_000,
      offlineAt: null,
      problem: null,
    });
    await open.clock.advance(5000);
    const again = await post({ url: X });
    expect([again.statusCode, again.json().isNew, again.json().listing.calls7d]).toEqual([200, false, 2]);
  });

  test('is answered when the list and the search show the route', async () => {
    const found = async () => (await app.inject('/v1/market/search?source=market')).json();
    expect((await found()).searched.marketListings).toBe(0);
    expect((await app.inject('/v1/market')).json().total).toBe(0);
    await post({ url: X });
    expect((await app.inject('/v1/market')).json()).toMatchObject({ total: 1, listings: [{ url: X }] });
    expect(await found()).toMatchObject({ searched: { marketListings: 1 }, results: [{ url: X, online: true }] });
  });

  test('answers in the documented shape', async () => {
    const submitted = await post({ url: X });
    const shapes = { 201: SUBMIT.answers[201].schema, list: LIST.answers[200].schema };
    expect(z.strictObject(shapes[201].shape).safeParse(submitted.json()).error).toBeUndefined();
    expect(Object.keys(submitted.json().listing).sort()).toEqual(Object.keys(LISTING.shape).sort());
    const listed = (await app.inject('/v1/market')).json();
    expect(listed.listings).toHaveLength(1);
    expect(z.strictObject(shapes.list.shape).safeParse(listed).error).toBeUndefined();
  });

  test.each<[string, string | object, number, string]>([
    ['a page', { url: 'https://a.good.example/page' }, 400, 'no_402'],
    ['an address inside', { url: 'https://10.0.0.1/' }, 400, 'url_not_public'],
    ['ourselves', { url: `${ORIGIN}/v1/paid/x` }, 400, 'own_origin'],
    ['no URL', {}, 400, 'bad_parameter'],
    ['a URL that is inherited', '{"__proto__":{"url":"https://a.good.example/x"}}', 400, 'invalid_json'],
    ['a list', [X], 400, 'bad_parameter'],
    ['no object', '"x"', 400, 'bad_parameter'],
    ['no JSON', '{', 400, 'invalid_json'],
    ['too much', { url: X, pad: 'x'.repeat(64 * 1024) }, 413, 'body_too_large'],
  ])('refuses %s as a problem', async (_what, payload, status, code) => {
    const answer = await post(payload);
    expect([answer.statusCode, answer.json().code, answer.json().charged]).toEqual([status, code, false]);
    expect(answer.headers['content-type']).toMatch(/^application\/problem\+json/);
    expect(answer.json().requestId).toBe(answer.headers['x-request-id']);
  });

  test('refuses other types than JSON', async () => {
    expect((await post('url=x', { 'content-type': 'application/x-www-form-urlencoded' })).statusCode).toBe(415);
  });
});

describe('GET /v1/market', () => {
  beforeEach(async () => {
    await post({ url: X });
    await open.clock.advance(1000);
    await post({ url: 'https://b.good.example/y' });
  });
  const get = (query = '', headers = {}) => app.inject({ url: `/v1/market${query}`, headers });

  test('lists all listings, the newest first, with the number of listings of each state', async () => {
    const answer = (await get()).json();
    expect(answer).toMatchObject({
      network: NETWORK,
      count: 2,
      total: 2,
      online: 2,
      source: { url: `${ORIGIN}/v1/market` },
    });
    expect(answer.listings.map(({ host }: { host: string }) => host)).toEqual(['b.good.example', 'a.good.example']);
  });

  test('returns a page of them, and refuses an impossible one', async () => {
    const part = (await get('?limit=1&offset=1')).json();
    expect([part.count, part.total, part.listings[0].host]).toEqual([1, 2, 'a.good.example']);
    expect((await get('?offset=9')).json()).toMatchObject({ count: 0, listings: [] });
    for (const query of ['?limit=0', '?limit=501', '?offset=-1', '?limit=x']) {
      expect([query, (await get(query)).statusCode]).toEqual([query, 400]);
    }
  });

  test('is not sent again to a client that has it, until it changes', async () => {
    const { etag } = (await get()).headers;
    const held = { 'if-none-match': String(etag) };
    expect((await get('', held)).statusCode).toBe(304);
    await post({ url: X });
    expect((await get('', held)).statusCode).toBe(200);
  });

  test('answers HEAD without a body, and no other method', async () => {
    const port = await listen(app);
    const length = await new Promise<[number | undefined, number]>((resolve) => {
      httpRequest({ port, path: '/v1/market', method: 'HEAD' }, (response) => {
        let bytes = 0;
        response.on('data', (chunk) => {
          bytes += chunk.length;
        });
        response.on('end', () => resolve([response.statusCode, bytes]));
      }).end();
    });
    expect(length).toEqual([200, 0]);
    const refused = await app.inject({ method: 'PUT', url: '/v1/market', payload: {} });
    expect([refused.statusCode, refused.headers.allow]).toEqual([405, 'GET, HEAD, POST, OPTIONS']);
  });
});
