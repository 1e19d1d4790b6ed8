import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { connectClient, demandOf } from '../../support/service/mcp.ts';
import { type Answer, type Service, startService } from '../../support/service/service.ts';
import { decoded } from '../../support/usdc/buyer.ts';
import { challengeIn } from '../../support/usdc/mpp-buyer.ts';

// PRICES and ROUTES_OFF hold on every surface alike. Each test names the values of the environment, not those of the catalogue that was made of them.

const OFF = ['web/check', 'fees/estimate', 'market/prices'];
const PRICES = { 'rpc/health': '0.0045', 'chain/usyc': '0.006', 'selftest/fail': '0.002' };
const UNITS = '4500';

let network: EmbeddedNetwork;
let service: Service;
let mcp: Awaited<ReturnType<typeof connectClient>>;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ lightning: true });
  const prices = Object.entries(PRICES).map(([route, usd]) => `${route}=${usd}`);
  const usyc = { USYC_TOKEN: `0x${'5a'.repeat(20)}`, USYC_ORACLE: `0x${'5b'.repeat(20)}` };
  const offers = { PRICES: prices.join(', '), ROUTES_OFF: OFF.join(','), SELFTEST_PATH: '/v1/paid/rpc/health' };
  const env = { MPP: 'on', ...usyc, ...offers };
  service = await startService(network, { env });
  mcp = await connectClient(service.origin);
});
afterAll(async () => {
  await mcp.close();
  await service.stop();
  await network.stop();
});

const json = async (path: string) => JSON.parse((await service.get(path)).body);
const amountsIn = (answer: Answer) =>
  (decoded(answer, 'payment-required').accepts as { amount: string }[]).map(({ amount }) => amount);
/** Whether a text names the priced route of a path. */
const isListed = (text: string, path: string) => new RegExp(`/v1/(paid|lightning|mpp)/${path}\\b`).test(text);

describe('a new price', () => {
  test('is asked for under /v1/paid, /v1/mpp and /v1/lightning', async () => {
    const paid = await service.get('/v1/paid/rpc/health');
    expect([paid.status, amountsIn(paid)]).toEqual([402, [UNITS]]);
    expect(JSON.parse(paid.body).hint).toContain('costs 0.0045 USDC');
    const { request = '' } = challengeIn(await service.get('/v1/mpp/rpc/health'));
    expect(JSON.parse(Buffer.from(request, 'base64url').toString()).amount).toBe(UNITS);
    expect(JSON.parse((await service.get('/v1/lightning/rpc/health')).body)).toMatchObject({ priceUsd: '0.0045' });
  });

  test('is in the price list, the manifest, the Lightning descriptor and the search', async () => {
    const { routes } = await json('/v1/paid');
    expect(routes).toContainEqual(
      expect.objectContaining({ route: 'GET /v1/paid/rpc/health', priceUsd: '0.0045', amount: UNITS }),
    );
    const { items } = await json('/.well-known/x402');
    const item = items.find(({ resource }: { resource: string }) => resource.endsWith('/v1/paid/rpc/health'));
    expect([item.metadata.priceUsd, item.accepts[0].amount]).toEqual(['0.0045', UNITS]);
    const inSats = (await json('/v1/lightning')).routes;
    for (const route of ['rpc/health', 'chain/usyc'] as const)
      expect(inSats).toContainEqual({ route: `GET /v1/lightning/${route}`, priceUsd: PRICES[route] });
    const { results } = await json('/v1/market/search?source=own&limit=50');
    const found = results.find(({ url }: { url: string }) => url.endsWith('/v1/paid/rpc/health'));
    expect(found.priceUsd).toBe('0.0045');
  });

  test('is in OpenAPI under each mount, and in llms.txt', async () => {
    const { paths } = await json('/openapi.json');
    for (const mount of ['paid', 'lightning', 'mpp'])
      expect(paths[`/v1/${mount}/rpc/health`].get['x-payment-info'].price.amount).toBe('0.0045');
    expect(paths['/v1/mpp/rpc/health'].get['x-payment-info'].offers[0].amount).toBe(UNITS);
    const { body } = await service.get('/llms.txt');
    expect(body).toContain('(/v1/paid/rpc/health): 0.0045,');
    expect(body).toContain('(/v1/lightning/chain/usyc): 0.006,');
  });

  test('is the price of the tool: in its text, for programs, and in its demand', async () => {
    const { tools } = await mcp.client.listTools();
    const tool = tools.find(({ name }) => name === 'paid_rpc_health');
    expect(tool?.description).toContain('Costs 0.0045 USDC a call');
    expect(tool?._meta?.['percall/price']).toMatchObject({ priceUsd: '0.0045' });
    expect(demandOf(await mcp.call('paid_rpc_health')).accepts.map(({ amount }) => amount)).toEqual([UNITS]);
  });

  test('is on the pages', async () => {
    const { body } = await service.get('/', { headers: { accept: 'text/html' } });
    expect(body).toMatch(/\/v1\/paid\/rpc\/health<\/code>.*<td class="number">0\.0045<\/td>/);
    expect((await service.get('/docs?q=rpc', { headers: { accept: 'text/html' } })).body).toContain('0.0045');
  });
});

describe('a route that is off', () => {
  test.each(OFF)('%s is 404 wherever it was sold', async (route) => {
    for (const mount of ['paid', 'lightning', 'mpp'])
      expect([mount, (await service.get(`/v1/${mount}/${route}`)).status]).toEqual([mount, 404]);
  });

  test('is in no document, on no page and no tool', async () => {
    const html = { headers: { accept: 'text/html' } };
    const texts = await Promise.all([
      ...['/v1/paid', '/v1/lightning', '/openapi.json', '/openapi-priced.json', '/llms.txt', '/.well-known/x402'].map(
        async (path) => [path, (await service.get(path)).body] as const,
      ),
      ...['/', '/docs'].map(async (path) => [path, (await service.get(path, html)).body] as const),
    ]);
    for (const [path, text] of texts) {
      expect([path, OFF.filter((route) => isListed(text, route))]).toEqual([path, []]);
      expect([path, isListed(text, 'web/extract')]).toEqual([path, true]);
    }
    const { results, searched } = await json('/v1/market/search?source=own&limit=50');
    expect(searched.ownRoutes).toBe(results.length);
    expect(results.filter(({ url }: { url: string }) => OFF.some((route) => isListed(url, route)))).toEqual([]);
    const tools = (await mcp.client.listTools()).tools.map(({ name }) => name);
    for (const route of OFF) expect(tools).not.toContain(`paid_${route.replace('/', '_')}`);
  });

  test('keeps its free form, as a route and as a tool', async () => {
    const free = await service.get('/v1/fees/estimate');
    expect([free.status, JSON.parse(free.body).detail]).toEqual([200, undefined]);
    expect((await json('/v1/rpc')).detail).toMatchObject({ path: '/v1/paid/rpc/health', priceUsd: '0.0045' });
    const tools = (await mcp.client.listTools()).tools.map(({ name }) => name);
    expect(tools).toContain('free_fees_estimate');
    expect((await json('/openapi.json')).paths['/v1/fees/estimate']).toBeDefined();
  });
});
