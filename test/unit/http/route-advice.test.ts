import { describe, expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { offeredCatalogue } from '../../../src/catalogue/offered.ts';
import { servedPaths, surfacesOf } from '../../../src/catalogue/paths.ts';
import { createRouteAdvice, NO_SUCH_ROUTE } from '../../../src/http/route-advice.ts';

const routes = [
  ...catalogue.flatMap((endpoint) => surfacesOf(endpoint).flatMap((mount) => servedPaths(endpoint, mount, 'arc'))),
  ...['/metrics', '/openapi.json', '/v1/paid', '/v1/payments/:id', '*'],
].map((url) => ({ url }));
const adviceWith = (isMppOn: boolean) => createRouteAdvice({ catalogue, chainSegment: 'arc', isMppOn, routes });
const advice = adviceWith(false);
const BOTH = '/v1/paid/fees/forecast in USDC, /v1/lightning/fees/forecast in bitcoin';

describe('a route that stands under another prefix is named with its own', () => {
  test.each([
    ['/v1/paid/chain/usyc', 'This route is sold in bitcoin only: /v1/lightning/chain/usyc.'],
    ['/v1/paid/arc/usyc', 'This route is sold in bitcoin only: /v1/lightning/chain/usyc.'],
    ['/v1/chain/usyc?x=1', 'This route is sold in bitcoin only: /v1/lightning/chain/usyc.'],
    ['/v1/lightning/selftest/fail', 'This route is sold in USDC only: /v1/paid/selftest/fail.'],
    ['/v1/fees/forecast', `This route is sold: ${BOTH}.`],
    ['/V1/Fees/Forecast/', `This route is sold: ${BOTH}.`],
    ['/v1/mpp/fees/forecast', `MPP is off here. This route is sold: ${BOTH}.`],
    ['/v1/mpp/chain/usyc', 'MPP is off here. This route is sold in bitcoin only: /v1/lightning/chain/usyc.'],
    ['/v1/paid/network', 'This route is free: /v1/network.'],
    ['/v1/mpp/network', 'This route is free: /v1/network.'],
  ])('%s', (path, told) => {
    expect(advice(path)).toBe(told);
  });

  test('and MPP is not called off where it is on', () => {
    expect(adviceWith(true)('/v1/mpp/chain/usyc')).toBe(
      'This route is sold in bitcoin only: /v1/lightning/chain/usyc.',
    );
  });
});

describe('a misspelt path is corrected', () => {
  test.each([
    ['/v1/fees/', 'has no slash at its end', '/v1/fees'],
    ['/v1//fees', 'has no doubled slash', '/v1/fees'],
    ['/V1/Fees', 'is in lower case', '/v1/fees'],
    ['//V1/fees//', 'has no doubled slash and has no slash at its end and is in lower case', '/v1/fees'],
    ['/openapi.json/', 'has no slash at its end', '/openapi.json'],
  ])('%s', (path, fault, served) => {
    expect(advice(path)).toBe(`There is no such route: its path ${fault}. Ask for ${served}.`);
  });

  test.each([
    ['/v1/paid/fees/forcast', '/v1/paid/fees/forecast'],
    ['/v1/paid/packages/npn', '/v1/paid/packages/npm'],
    ['/paid/fees/estimate', '/v1/paid/fees/estimate'],
    ['/network', '/v1/network'],
    ['/v1/netwrok', '/v1/network'],
    ['http://a.example/v1/netwrok', '/v1/network'],
  ])('%s', (path, served) => {
    expect(advice(path)).toBe(`There is no such route; did you mean ${served}?`);
  });
});

test.each([
  '/',
  '/nope',
  '/v1/paid/weather',
  '/v1',
  '',
  `/v1/${'a'.repeat(8000)}`,
  '/metric',
  '/Metrics',
  '/v1/payments/',
])('a path that is near no public route, %j, gets the lists of all routes', (path) => {
  expect(advice(path)).toBe(NO_SUCH_ROUTE);
});

test('a route that is mounted for payments from before alone is not suggested', () => {
  const { catalogue: offered } = offeredCatalogue(catalogue, { prices: [], routesOff: ['web/check'] });
  const told = createRouteAdvice({ catalogue: offered, chainSegment: 'arc', isMppOn: false, routes });
  expect(advice('/v1/paid/web/chek')).toBe('There is no such route; did you mean /v1/paid/web/check?');
  expect(told('/v1/paid/web/chek')).toBe(NO_SUCH_ROUTE);
  expect(told('/V1/paid/web/check')).not.toContain('/v1/paid/web/check');
  expect(told('/v1/paid/web/extrac')).toContain('did you mean /v1/paid/web/extract?');
});
