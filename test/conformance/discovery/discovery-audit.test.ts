import {
  type AuditWarning,
  checkEndpointSchema,
  checkL2ForOpenAPI,
  checkL4ForOpenAPI,
  discoverOriginSchema,
  type EndpointMethodAdvisory,
  getL3ForOpenAPI,
  getOpenAPI,
  getWarningsForFavicon,
  getWarningsForL2,
  getWarningsForL3,
  getWarningsForL4,
  getWarningsForLegacyWellKnown,
  getWarningsForOpenAPI,
  isOpenApiParseFailure,
  probeLegacyWellKnown,
  validatePaymentRequiredDetailed,
} from '@agentcash/discovery';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import type { Endpoint } from '../../../src/catalogue/endpoint.ts';
import { entriesOn, type Mount, pathOn, surfacesOf } from '../../../src/catalogue/paths.ts';
import { priceOf } from '../../support/prices.ts';
import { countRunningTime } from '../../support/running-time.ts';
import { type Service, startService } from '../../support/service/service.ts';

// The audit's library has time-outs of its own.
countRunningTime();

let network: EmbeddedNetwork;
let service: Service;
beforeAll(async () => {
  network = await startEmbeddedNetwork({ lightning: true });
  service = await startService(network, { env: { MPP: 'on' } });
});
afterAll(async () => {
  await service.stop();
  await network.stop();
});

/**
 * Findings that mislead no client: more routes than fit a model's context at once (the same routes are sold on two rails),
 * no icon, and the manifest that older crawlers still read.
 */
const KNOWN = ['L2_ROUTE_COUNT_HIGH', 'FAVICON_MISSING', 'LEGACY_WELL_KNOWN_FOUND'];
const mountsOf = (endpoint: Endpoint<never>): Mount[] =>
  surfacesOf(endpoint).flatMap((surface): Mount[] => (surface === 'paid' ? ['paid', 'mpp'] : [surface]));
const unexpected = (found: readonly AuditWarning[]) =>
  found.filter(({ code, severity }) => severity === 'error' || !KNOWN.includes(code));

/** What the auditor's library says about one route by each of its methods. It asks the route itself. */
async function adviceOn(path: string): Promise<Map<string, EndpointMethodAdvisory>> {
  const checked = await checkEndpointSchema({ url: service.origin + path, probe: true });
  if (!checked.found) throw new Error(`${path} was not found: ${JSON.stringify(checked)}`);
  return new Map(checked.advisories.map((advice) => [advice.method, advice]));
}

/** The same of one method, which the route must have. */
function ofMethod(advice: Map<string, EndpointMethodAdvisory>, method = 'GET'): EndpointMethodAdvisory {
  const found = advice.get(method);
  if (!found) throw new Error(`no advice on ${method}: ${JSON.stringify([...advice])}`);
  return found;
}

async function readOpenApi() {
  const source = await getOpenAPI(service.origin);
  const read = source.isOk() ? source.value : null;
  if (read === null || isOpenApiParseFailure(read)) throw new Error('the OpenAPI document was not read');
  return read;
}

describe('the audit of @agentcash/discovery', () => {
  test('finds no fault in the OpenAPI document, its routes, its guidance and the rest of the origin', async () => {
    const openApi = await readOpenApi();
    const listed = checkL2ForOpenAPI(openApi);
    const rest = await probeLegacyWellKnown(service.origin);
    const favicon = await getWarningsForFavicon(service.origin);
    const found = [
      ...getWarningsForOpenAPI(openApi),
      ...getWarningsForL2(listed),
      ...getWarningsForL4(checkL4ForOpenAPI(openApi)),
      ...getWarningsForLegacyWellKnown(rest._unsafeUnwrap()),
      ...favicon._unsafeUnwrap(),
    ];
    expect(unexpected(found)).toEqual([]);
    // The audit did run: it found the manifest, and counted its routes.
    expect(found.map(({ code }) => code)).toEqual(
      expect.arrayContaining(['L2_ROUTE_COUNT_HIGH', 'LEGACY_WELL_KNOWN_FOUND']),
    );
  });

  test('reads every route of the catalogue as paid or open, with its price', async () => {
    const { routes } = checkL2ForOpenAPI(await readOpenApi());
    const audited = new Map(routes.map((route) => [`${route.method} ${route.path}`, route]));
    const wanted = service.deps.listed.flatMap((endpoint) =>
      mountsOf(endpoint).map((mount) => [`GET ${pathOn(endpoint, mount)}`, endpoint.price, mount] as const),
    );
    const priced = [...audited].flatMap(([route, { authMode }]) => (authMode === 'paid' ? [route] : []));
    expect(priced.sort()).toEqual(wanted.flatMap(([route, price]) => (price ? [route] : [])).sort());
    for (const [route, price, mount] of wanted) {
      const protocols = { free: [], paid: ['x402'], lightning: ['x402', 'l402', 'mpp'], mpp: ['mpp'] }[mount];
      const terms = price
        ? { authMode: 'paid', price: `${price.usd} USD`, pricingMode: 'fixed', protocols }
        : { authMode: 'unprotected' };
      expect(audited.get(route), route).toMatchObject(terms);
    }
    for (const [route, { authMode }] of audited) expect([route, authMode]).toEqual([route, expect.any(String)]);
  });

  test('finds no fault in any route as the document describes it', async () => {
    const paths = service.deps.listed.flatMap((endpoint) => mountsOf(endpoint).map((at) => pathOn(endpoint, at)));
    const openApi = await readOpenApi();
    for (const path of paths) {
      const described = getL3ForOpenAPI(openApi, path, 'GET');
      expect([path, described]).toEqual([path, expect.any(Object)]);
      expect([path, getWarningsForL3(described)]).toEqual([path, []]);
    }
  });

  test('finds no fault in the 402 of any USDC route, requested without parameters, by GET and by HEAD', async () => {
    const paid = entriesOn(service.deps.listed, 'paid');
    for (const endpoint of paid) {
      const path = pathOn(endpoint, 'paid');
      const all = await adviceOn(path);
      const [advice, head] = [ofMethod(all), ofMethod(all, 'HEAD')];
      expect([path, getWarningsForL3(advice), getWarningsForL3(head)]).toEqual([path, [], []]);
      const { valid, version, issues, normalized } = validatePaymentRequiredDetailed(advice.paymentRequiredBody);
      expect({ path, valid, version, issues }).toEqual({ path, valid: true, version: 2, issues: [] });
      expect(normalized).toMatchObject({ hasInputSchema: true, hasOutputSchema: true });
      expect(advice.paymentOptions).toMatchObject([{ amount: String(endpoint.price?.units), network: 'eip155:5042' }]);
    }
    expect(paid.map(({ path }) => path)).toContain('/chain/wallet');
  });

  test('finds no fault in the 402 of a route under /v1/mpp', async () => {
    const advice = ofMethod(await adviceOn('/v1/mpp/fees/estimate'));
    expect(getWarningsForL3(advice)).toEqual([]);
    expect(advice.paymentOptions).toMatchObject([
      { protocol: 'mpp', paymentMethod: 'evm', intent: 'charge', amount: String(priceOf('/fees/estimate').units) },
    ]);
  });

  test('finds no fault in the 402 of a Lightning route', async () => {
    const advice = ofMethod(await adviceOn('/v1/lightning/fees/estimate'));
    // The auditor expects a wallet's address in every challenge of MPP. An invoice names its payee itself.
    const faults = getWarningsForL3(advice).filter(({ code }) => code !== 'MPP_CHALLENGE_RECIPIENT_MISSING');
    expect(faults).toEqual([]);
    expect(validatePaymentRequiredDetailed(advice.paymentRequiredBody)).toMatchObject({ valid: true, issues: [] });
    expect(advice.paymentOptions).toMatchObject([
      { protocol: 'x402', asset: 'BTC', network: network.lightning?.network },
      { protocol: 'mpp', paymentMethod: 'lightning', intent: 'charge', asset: 'sat' },
    ]);
  });

  test('reads the priced routes of the slim document as it reads them in the whole one', async () => {
    const slim = await getOpenAPI(service.origin, {}, undefined, `${service.origin}/openapi-priced.json`);
    const read = slim.isOk() ? slim.value : null;
    if (read === null || isOpenApiParseFailure(read)) throw new Error('the slim document was not read');
    const priced = checkL2ForOpenAPI(await readOpenApi()).routes.filter(({ authMode }) => authMode === 'paid');
    expect(priced).toHaveLength(service.deps.listed.flatMap(mountsOf).filter((mount) => mount !== 'free').length);
    expect(checkL2ForOpenAPI(read).routes).toEqual(priced);
    expect(unexpected(getWarningsForOpenAPI(read))).toEqual([]);
  });

  test('offers agents the short text first', async () => {
    const found = await discoverOriginSchema({ target: service.origin });
    const { body } = await service.get('/llms.txt');
    expect(found).toMatchObject({ found: true, trustTier: 'origin_hosted', guidance: body });
  });

  test('would find a 402 without schemas, and an operation without terms', () => {
    const bare = { x402Version: 2, resource: { url: 'https://a.example' }, accepts: [] };
    const codes = validatePaymentRequiredDetailed(bare).issues.map(({ code }) => code);
    expect(codes).toEqual(['X402_ACCEPTS_EMPTY', 'SCHEMA_INPUT_MISSING', 'SCHEMA_OUTPUT_MISSING']);
    const routes = [{ path: '/x', method: 'GET', summary: 'X', authMode: 'paid' }] as const;
    const found = getWarningsForL2({ routes: [...routes], source: 'openapi' });
    expect(unexpected(found).map(({ code }) => code)).toEqual([
      'L2_PRICE_MISSING_ON_PAID',
      'L2_PROTOCOLS_MISSING_ON_PAID',
    ]);
  });
});

describe('what the lists name', () => {
  const textOf = async (path: string) => (await service.get(path)).body;

  test('is, in the search, the routes that are sold for USDC, with a node that can be paid', async () => {
    expect(JSON.parse(await textOf('/v1/lightning')).payTo).not.toBeNull();
    const { searched, results } = JSON.parse(await textOf('/v1/market/search?limit=50&source=own'));
    const sold = entriesOn(service.deps.listed, 'paid').filter(({ path }) => path !== '/selftest/fail');
    expect(searched.ownRoutes).toBe(sold.length);
    expect(new Set(results.map(({ network: paidOn }: { network: string }) => paidOn))).toEqual(
      new Set(['eip155:5042']),
    );
    expect(results).toHaveLength(sold.length);
  });

  test('leaves out chain/usyc while no token is configured; its route answers 503 and makes no invoice', async () => {
    const listing = { jsonrpc: '2.0', id: 1, method: 'tools/list' };
    const tools = await fetch(`${service.origin}/mcp/lightning`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
      body: JSON.stringify(listing),
    });
    const lists = ['/v1/lightning', '/openapi.json', '/openapi-priced.json', '/llms.txt', '/v1/paid', '/', '/docs'];
    const texts = await Promise.all([tools.text(), ...lists.map(textOf)]);
    for (const text of texts) {
      expect(text).toMatch(/wallet/);
      expect(text).not.toMatch(/chain.usyc/);
    }
    const { status, headers, body } = await service.get('/v1/lightning/chain/usyc');
    expect([status, JSON.parse(body).code]).toEqual([503, 'usyc_unavailable']);
    expect([headers['retry-after'], headers['payment-required']]).toEqual(['3600', undefined]);
  });
});
