import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { entriesOn, type Surface } from '../../../src/catalogue/paths.ts';
import { priceOf } from '../../support/prices.ts';
import { connectClient, demandOf } from '../../support/service/mcp.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { decoded } from '../../support/usdc/buyer.ts';

let network: EmbeddedNetwork;
let service: Service;
let mcp: Awaited<ReturnType<typeof connectClient>>;
beforeAll(async () => {
  network = await startEmbeddedNetwork();
  // A token must be watched; otherwise its route's example would not be a valid request.
  const usyc = { USYC_TOKEN: `0x${'5a'.repeat(20)}`, USYC_ORACLE: `0x${'5b'.repeat(20)}` };
  const env = { ...usyc, WATCH_TOKENS: `EURC:0x${'89'.repeat(20)}` };
  service = await startService(network, { env });
  mcp = await connectClient(service.origin);
});
afterAll(async () => {
  await mcp.close();
  await service.stop();
  await network.stop();
});

/** Prices in USD, or in base units of USDC where a surface speaks of these, by the path below `/v1/paid` or `/v1/lightning`. */
type Prices = Record<string, unknown>;

const entries = (surface: Surface) => entriesOn(service.deps.listed, surface);
const inUsd = (surface: Surface): Prices =>
  Object.fromEntries(entries(surface).map(({ path, price }) => [path, price?.usd]));
const inUnits = (surface: Surface): Prices =>
  Object.fromEntries(entries(surface).map(({ path, price }) => [path, String(price?.units)]));
const below = (address: string) => address.replace(/^.*\/v1\/(paid|lightning)(?=\/)/, '');
const pricesOf = <T>(list: readonly T[], read: (one: T) => readonly [address: string, price: unknown]): Prices => {
  const found = list.map(read).map(([address, price]) => [below(address), price] as const);
  expect(new Set(found.map(([path]) => path)).size).toBe(list.length);
  return Object.fromEntries(found);
};
const json = async (path: string) => JSON.parse((await service.get(path)).body);

interface Demand {
  readonly accepts: readonly { readonly amount: string }[];
}

describe('the price in the catalogue', () => {
  test('is the same in USDC as in USD', () => {
    const [usd, units] = [Object.entries(inUsd('paid')), inUnits('paid')];
    expect(usd.map(([path]) => path)).toContain('/chain/wallet');
    for (const [path, price] of usd) expect([path, Number(units[path])]).toEqual([path, Number(price) * 1e6]);
  });

  test('is the price in the price list', async () => {
    const { routes } = (await json('/v1/paid')) as { routes: { route: string; priceUsd: string; amount: string }[] };
    expect(pricesOf(routes, ({ route, priceUsd }) => [route, priceUsd])).toEqual(inUsd('paid'));
    expect(pricesOf(routes, ({ route, amount }) => [route, amount])).toEqual(inUnits('paid'));
  });

  test('is the price in every 402', async () => {
    const asked = await Promise.all(
      entries('paid').map(async ({ path }) => {
        const { accepts } = decoded(await service.get(`/v1/paid${path}`), 'payment-required') as unknown as Demand;
        return [path, accepts.map(({ amount }) => amount)] as const;
      }),
    );
    const wanted = Object.entries(inUnits('paid')).map(([path, amount]) => [path, [amount]]);
    expect(Object.fromEntries(asked)).toEqual(Object.fromEntries(wanted));
  });

  test('is the price in OpenAPI, on both rails', async () => {
    const { paths } = (await json('/openapi.json')) as { paths: Record<string, { get?: Operation }> };
    const priced = Object.entries(paths).flatMap(([path, { get }]) => {
      const info = get?.['x-payment-info'];
      return info ? [{ path, usd: info.price.amount, units: info.protocols[0]?.x402.amount }] : [];
    });
    const on = (surface: Surface) => priced.filter(({ path }) => path.startsWith(`/v1/${surface}/`));
    expect(priced).toHaveLength(on('paid').length + on('lightning').length);
    expect(pricesOf(on('paid'), ({ path, usd }) => [path, usd])).toEqual(inUsd('paid'));
    expect(pricesOf(on('paid'), ({ path, units }) => [path, units])).toEqual(inUnits('paid'));
    expect(pricesOf(on('lightning'), ({ path, usd }) => [path, usd])).toEqual(inUsd('lightning'));
  });

  test('is the price in the Lightning descriptor', async () => {
    const { routes } = (await json('/v1/lightning')) as { routes: { route: string; priceUsd: string }[] };
    expect(routes.length).toBeGreaterThan(0);
    expect(pricesOf(routes, ({ route, priceUsd }) => [route, priceUsd])).toEqual(inUsd('lightning'));
  });

  test('is the price in llms.txt, for routes sold for USDC and routes sold for bitcoin only', async () => {
    const { body } = await service.get('/llms.txt');
    const lines = [...body.matchAll(/^- \[[^\]]+\]\((\/v1\/(?:paid|lightning)\/[^)]+)\): ([\d.]+),/gm)];
    const alone = entries('lightning').filter(({ onlyOn }) => onlyOn === 'lightning');
    expect(alone).toHaveLength(2);
    expect(pricesOf(lines, ([, address, usd]) => [String(address), usd])).toEqual({
      ...inUsd('paid'),
      ...Object.fromEntries(alone.map(({ path, price }) => [path, price?.usd])),
    });
  });

  test('is the price in /.well-known/x402', async () => {
    const { items } = (await json('/.well-known/x402')) as {
      items: (Demand & { resource: string; metadata: { priceUsd: string } })[];
    };
    expect(pricesOf(items, ({ resource, metadata }) => [resource, metadata.priceUsd])).toEqual(inUsd('paid'));
    expect(pricesOf(items, ({ resource, accepts }) => [resource, accepts.map(({ amount }) => amount).join()])).toEqual(
      inUnits('paid'),
    );
  });

  test('is the price of the tools: in text, for programs, and in their demand for payment', async () => {
    const { tools } = await mcp.client.listTools();
    const priced = tools.filter(({ name }) => name.startsWith('paid_'));
    const named = new Map(
      [...entries('paid'), ...entries('lightning')].map(({ path }) => [
        `paid${path.replaceAll('/', '_')}`,
        `/v1/paid${path}`,
      ]),
    );
    const addressOf = (name: string) => named.get(name) ?? name;
    const wanted = { ...inUsd('lightning'), ...inUsd('paid') };
    expect(priced).toHaveLength(Object.keys(wanted).length);
    expect(
      pricesOf(priced, ({ name, description }) => [addressOf(name), /Costs ([\d.]+) USD/.exec(description ?? '')?.[1]]),
    ).toEqual(wanted);
    expect(
      pricesOf(priced, ({ name, _meta }) => [
        addressOf(name),
        (_meta?.['percall/price'] as { priceUsd: string } | undefined)?.priceUsd,
      ]),
    ).toEqual(wanted);
    const demands = await Promise.all(
      entries('paid').map(async ({ path, example }) => {
        const demand = await mcp.call(`paid${path.replaceAll('/', '_')}`, example.params);
        expect([path, demand.structuredContent]).toEqual([path, expect.objectContaining({ x402Version: 2 })]);
        const { accepts } = demandOf(demand);
        return [path, accepts.map(({ amount }) => amount).join()] as const;
      }),
    );
    expect(Object.fromEntries(demands)).toEqual(inUnits('paid'));
  });

  test('is the price in the search, for every route that can be bought; the route that always fails is not listed', async () => {
    const { results, searched } = (await json('/v1/market/search?source=own&limit=50')) as {
      results: { url: string; priceUsd: string }[];
      searched: { ownRoutes: number };
    };
    const { '/selftest/fail': always, ...offered } = inUsd('paid');
    expect(always).toBe(priceOf('/selftest/fail').usd);
    expect(searched.ownRoutes).toBe(Object.keys(offered).length);
    expect(pricesOf(results, ({ url, priceUsd }) => [url, priceUsd])).toEqual(offered);
  });

  test('is within the range that the README states', () => {
    const readme = readFileSync(join(import.meta.dirname, '../../../README.md'), 'utf8');
    const [, least, most] = /from ([\d.]+) to ([\d.]+) USD/.exec(readme) ?? [];
    const prices = Object.values({ ...inUsd('paid'), ...inUsd('lightning') }).map(Number);
    expect([Math.min(...prices), Math.max(...prices)]).toEqual([Number(least), Number(most)]);
  });
});

interface Operation {
  readonly 'x-payment-info'?: {
    readonly price: { readonly amount: string };
    readonly protocols: readonly { readonly x402: { readonly amount?: string } }[];
  };
}
