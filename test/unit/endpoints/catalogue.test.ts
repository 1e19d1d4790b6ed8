import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { parseParams } from '../../../src/catalogue/params.ts';
import { entriesOn, listedPath, pathOn } from '../../../src/catalogue/paths.ts';
import { BadParameter } from '../../../src/errors.ts';

const byPath = new Map(catalogue.map((endpoint) => [listedPath(endpoint), endpoint]));
const endpointAt = (path: string) => byPath.get(path)!;

test('paths and prices are the promised ones, and each path is listed once', () => {
  expect(catalogue.map((endpoint) => [listedPath(endpoint), endpoint.price?.units ?? null])).toEqual([
    ['/v1/network', null],
    ['/v1/fees', null],
    ['/v1/fees/estimate', null],
    ['/v1/activity', null],
    ['/v1/deploys', null],
    ['/v1/rpc', null],
    ['/v1/fx', null],
    ['/v1/token', null],
    ['/v1/selftest', null],
    ['/v1/health', null],
    ['/v1/lightning/market/prices', 2000n],
    ['/v1/paid/fees/forecast', 1000n],
    ['/v1/paid/fees/estimate', 500n],
    ['/v1/paid/deploys/history', 2000n],
    ['/v1/paid/rpc/health', 500n],
    ['/v1/paid/fx/execution', 1000n],
    ['/v1/paid/chain/wallet', 2000n],
    ['/v1/paid/chain/token', 2000n],
    ['/v1/paid/chain/tx', 3000n],
    ['/v1/lightning/chain/usyc', 1000n],
    ['/v1/paid/web/extract', 5000n],
    ['/v1/paid/web/check', 2000n],
    ['/v1/paid/packages/npm', 2000n],
    ['/v1/paid/packages/pypi', 2000n],
    ['/v1/paid/packages/vulns', 4000n],
    ['/v1/paid/domains/dns', 1000n],
    ['/v1/paid/domains/whois', 3000n],
    ['/v1/paid/currency/rates', 1000n],
    ['/v1/paid/currency/convert', 1000n],
    ['/v1/paid/wiki/search', 1000n],
    ['/v1/paid/wiki/summary', 1000n],
    ['/v1/paid/wiki/article', 3000n],
    ['/v1/paid/selftest/fail', 1000n],
  ]);
  expect(Object.isFrozen(catalogue)).toBe(true);
});

test('the Lightning routes are the promised ones, in the promised order', () => {
  expect(
    entriesOn(catalogue, 'lightning').map((endpoint) => [pathOn(endpoint, 'lightning'), endpoint.price?.usd]),
  ).toEqual([
    ['/v1/lightning/market/prices', '0.002'],
    ['/v1/lightning/fees/forecast', '0.001'],
    ['/v1/lightning/fees/estimate', '0.0005'],
    ['/v1/lightning/deploys/history', '0.002'],
    ['/v1/lightning/rpc/health', '0.0005'],
    ['/v1/lightning/fx/execution', '0.001'],
    ['/v1/lightning/chain/wallet', '0.002'],
    ['/v1/lightning/chain/token', '0.002'],
    ['/v1/lightning/chain/tx', '0.003'],
    ['/v1/lightning/chain/usyc', '0.001'],
    ['/v1/lightning/web/extract', '0.005'],
    ['/v1/lightning/web/check', '0.002'],
    ['/v1/lightning/packages/npm', '0.002'],
    ['/v1/lightning/packages/pypi', '0.002'],
    ['/v1/lightning/packages/vulns', '0.004'],
    ['/v1/lightning/domains/dns', '0.001'],
    ['/v1/lightning/domains/whois', '0.003'],
    ['/v1/lightning/currency/rates', '0.001'],
    ['/v1/lightning/currency/convert', '0.001'],
    ['/v1/lightning/wiki/search', '0.001'],
    ['/v1/lightning/wiki/summary', '0.001'],
    ['/v1/lightning/wiki/article', '0.003'],
  ]);
});

describe.each(catalogue.map((endpoint) => [listedPath(endpoint), endpoint] as const))('%s', (_path, endpoint) => {
  test('its example matches its own schemas', () => {
    expect(() => parseParams(endpoint, endpoint.example.params)).not.toThrow();
    expect(endpoint.result.parse(endpoint.example.result)).toEqual(endpoint.example.result);
  });

  test('its result schema is strict and can be published', () => {
    expect(endpoint.result.safeParse({ ...endpoint.example.result, surprise: 1 }).success).toBe(false);
    const schema = z.toJSONSchema(endpoint.result) as { additionalProperties?: unknown };
    expect(schema.additionalProperties).toBe(false);
    expect(() => z.toJSONSchema(endpoint.params, { io: 'input' })).not.toThrow();
  });

  test('its free summary is in the catalogue', () => {
    if (endpoint.freeSummary !== undefined) expect(endpointAt(endpoint.freeSummary).access).toBe('free');
  });
});

const ADDRESS = '50A2b0B577eC24d7ce1aeD372A8a6fd14CE1bE57';
const HASH = 'aB'.repeat(32);

test.each([
  ['/v1/paid/chain/wallet', { address: `0x${ADDRESS}` }, { address: `0x${ADDRESS.toLowerCase()}` }],
  ['/v1/paid/chain/wallet', { address: `0X${ADDRESS.toUpperCase()}` }, { address: `0x${ADDRESS.toLowerCase()}` }],
  ['/v1/paid/chain/tx', { hash: `0x${HASH}` }, { hash: `0x${HASH.toLowerCase()}` }],
  ['/v1/paid/fees/estimate', {}, { gas: 21000 }],
  ['/v1/paid/fees/estimate', { gas: '1' }, { gas: 1 }],
  ['/v1/fees/estimate', { gas: '30000000' }, { gas: 30_000_000 }],
  ['/v1/deploys', {}, { limit: 50 }],
  ['/v1/paid/deploys/history', {}, { limit: 200 }],
  ['/v1/fx', {}, { window: 60, symbol: 'EURC' }],
  ['/v1/paid/fx/execution', { window: '1440', symbol: 'cirBTC' }, { window: 1440, symbol: 'cirBTC' }],
])('%s accepts %o', (path, query, params) => {
  expect(parseParams(endpointAt(path), query)).toEqual(params);
});

test.each([
  ['/v1/paid/chain/wallet', {}, 'address: required: a 0x address of 40 hex digits'],
  ['/v1/paid/chain/wallet', { address: '' }, 'address: a 0x address of 40 hex digits'],
  ['/v1/paid/chain/wallet', { address: ADDRESS }, 'address: a 0x address of 40 hex digits'],
  ['/v1/paid/chain/token', { address: `0x${ADDRESS}0` }, 'address: a 0x address of 40 hex digits'],
  ['/v1/paid/chain/token', { address: `0x${ADDRESS}\n` }, 'address: a 0x address of 40 hex digits'],
  ['/v1/paid/chain/tx', { hash: `0x${ADDRESS}` }, 'hash: a 0x transaction hash of 64 hex digits'],
  ['/v1/paid/fees/estimate', { gas: '0' }, 'gas: a whole number from 1 to 30000000'],
  ['/v1/paid/fees/estimate', { gas: '30000001' }, 'gas: a whole number from 1 to 30000000'],
  ['/v1/paid/fees/estimate', { gas: '1e6' }, 'gas: a whole number from 1 to 30000000'],
  ['/v1/paid/fees/estimate', { gas: '' }, 'gas: a whole number from 1 to 30000000'],
  ['/v1/deploys', { limit: '201' }, 'limit: a whole number from 1 to 200'],
  ['/v1/deploys', { limit: '0' }, 'limit: a whole number from 1 to 200'],
  ['/v1/paid/deploys/history', { limit: '1001' }, 'limit: a whole number from 1 to 1000'],
  ['/v1/fx', { window: '4' }, 'window: a whole number from 5 to 1440'],
  ['/v1/fx', { window: 'hour' }, 'window: a whole number from 5 to 1440'],
  ['/v1/fx', { symbol: '' }, 'symbol: the symbol of a watched token'],
  ['/v1/paid/fx/execution', { window: '1441' }, 'window: a whole number from 5 to 1440'],
  ['/v1/paid/selftest/fail', { x: '1' }, 'x: no such parameter'],
])('%s refuses %o and names the parameter', (path, query, message) => {
  expect(() => parseParams(endpointAt(path), query)).toThrow(BadParameter);
  expect(() => parseParams(endpointAt(path), query)).toThrow(message);
});
