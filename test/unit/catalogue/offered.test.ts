import { expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { offeredCatalogue } from '../../../src/catalogue/offered.ts';
import { entriesOn } from '../../../src/catalogue/paths.ts';
import { putBlocks } from '../../support/chain/chain-rows.ts';
import { UNTIL, useCollected } from '../endpoints/collected-fixture.ts';
import { run } from '../endpoints/fixture.ts';

const given = useCollected();

const offered = (prices: string[], routesOff: string[] = []) => offeredCatalogue(catalogue, { prices, routesOff });
const priceOf = (list: typeof catalogue, path: string) =>
  list.find((endpoint) => endpoint.path === path && endpoint.access === 'paid')?.price;

test('without a change every entry is the declared one', () => {
  expect(offered([])).toEqual({ catalogue, off: [], problems: [] });
  expect(offered([]).catalogue.every((endpoint, at) => endpoint === catalogue[at])).toBe(true);
});

test('a price replaces the declared one, and no other; its text has no needless zeros', () => {
  const { catalogue: changed, problems } = offered(['chain/wallet=0.0040', 'fees/estimate = 1']);
  expect(problems).toEqual([]);
  expect(priceOf(changed, '/chain/wallet')).toEqual({ usd: '0.004', units: 4000n });
  expect(priceOf(changed, '/fees/estimate')).toEqual({ usd: '1', units: 1_000_000n });
  const others = changed.filter((endpoint, at) => endpoint !== catalogue[at]);
  // The free summary names the price of its detail.
  expect(others.map(({ path, access }) => [path, access])).toEqual([
    ['/fees/estimate', 'free'],
    ['/fees/estimate', 'paid'],
    ['/chain/wallet', 'paid'],
  ]);
  expect(priceOf(offered(['selftest/fail=0.003']).catalogue, '/selftest/fail')?.units).toBe(3000n);
});

test('a route that is off is no longer sold in USDC or in bitcoin; a free route of its path stays', () => {
  const { catalogue: left, off, problems } = offered([], ['web/check', 'fees/estimate', 'market/prices']);
  expect(problems).toEqual([]);
  expect(off.map(({ path, access }) => [path, access])).toEqual(
    ['/market/prices', '/fees/estimate', '/web/check'].map((path) => [path, 'paid']),
  );
  expect(left).toHaveLength(catalogue.length - 3);
  const paths = (surface: 'free' | 'paid' | 'lightning') => entriesOn(left, surface).map(({ path }) => path);
  expect(paths('free')).toContain('/fees/estimate');
  for (const path of ['/web/check', '/fees/estimate', '/market/prices'])
    expect([...paths('paid'), ...paths('lightning')]).not.toContain(path);
});

test.each<[string, string[], string[], string]>([
  [
    'an unknown route',
    ['chain/walet=0.004'],
    [],
    'PRICES: "chain/walet=0.004": there is no route chain/walet; did you',
  ],
  ['a path in place of a route', ['/v1/paid/web/check=1'], [], 'did you mean web/check?'],
  ['a route that is nothing like one of ours', ['weather/today=1'], [], 'there is no route weather/today'],
  ['a route named twice', ['web/check=1', 'web/check=2'], [], 'PRICES: "web/check=2": web/check is named twice'],
  ['a free route', ['network=0.001'], [], 'PRICES: "network=0.001": network is free'],
  ['an entry without a price', ['web/check'], [], 'PRICES: "web/check": write ROUTE=USD'],
  ['an entry with two prices', ['web/check=1=2'], [], 'PRICES: "web/check=1=2": write ROUTE=USD'],
  ['a price of zero', ['web/check=0.000000'], [], 'PRICES: "web/check=0.000000": a price must be more than 0'],
  ['a price below a base unit', ['web/check=0.0000001'], [], 'at most 6 decimals'],
  ['a price that is no number', ['web/check=cheap'], [], 'PRICES: "web/check=cheap": not a USD price'],
  ['a negative price', ['web/check=-1'], [], 'PRICES: "web/check=-1": not a USD price'],
  [
    'an unknown route that is off',
    [],
    ['web/chek'],
    'ROUTES_OFF: "web/chek": there is no route web/chek; did you mean',
  ],
  ['a free route that is off', [], ['fees'], 'ROUTES_OFF: "fees": fees is free'],
  ['a route that is off twice', [], ['web/check', 'web/check'], 'ROUTES_OFF: "web/check": web/check is named twice'],
  ['the failing route that is off', [], ['selftest/fail'], 'ROUTES_OFF: "selftest/fail": it stays'],
])('refuses %s by key and entry, and changes nothing for it', (_, prices, routesOff, problem) => {
  const { catalogue: left, problems } = offered(prices, routesOff);
  expect(problems).toEqual([expect.stringContaining(problem)]);
  const changed = left.filter((endpoint) => !catalogue.includes(endpoint)).map(({ path }) => path);
  expect(changed).toEqual(prices.length === 2 ? ['/web/check'] : []);
  if (routesOff.length < 2) expect(left).toHaveLength(catalogue.length);
});

test('names every fault at once', () => {
  expect(offered(['a=1', 'web/check=0'], ['selftest/fail', 'b']).problems).toHaveLength(4);
});

test('a free answer names the new price of its detail, and no detail that is off', async () => {
  putBlocks(given().db, [{ number: 1000, at: UNTIL }]);
  const { catalogue: left } = offered(['fees/forecast=0.0125'], ['fees/estimate']);
  const free = (path: string) => left.find((endpoint) => endpoint.path === path && endpoint.access === 'free');
  const answerOf = async (path: string) => {
    const endpoint = free(path);
    if (!endpoint) throw new Error(`${path} is not free`);
    const reply = await run(endpoint as never, given().sources, endpoint.params.parse({}));
    expect([path, endpoint.result.safeParse(reply).error]).toEqual([path, undefined]);
    expect(endpoint.result.safeParse(endpoint.example.result).error).toBeUndefined();
    return [reply.detail, endpoint.example.result.detail];
  };
  const detail = expect.objectContaining({ path: '/v1/paid/fees/forecast', priceUsd: '0.0125' });
  expect(await answerOf('/fees')).toEqual([detail, detail]);
  expect(await answerOf('/fees/estimate')).toEqual([undefined, undefined]);
});
