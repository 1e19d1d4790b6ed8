import { describe, expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { entriesOn, pathOn } from '../../../src/catalogue/paths.ts';
import { entrySchema } from '../../../src/discovery/entry.ts';
import { NETWORK, ORIGIN, ownListings, SELLER } from './world.ts';

const listings = ownListings();
const sold = entriesOn(catalogue, 'paid').filter(({ path }) => path !== '/selftest/fail');

/** Paths about the state of the chain's network. */
const OF_NETWORK = ['fees', 'deploys', 'rpc', 'fx'];

describe('our own entries', () => {
  test('are the USDC routes that can be bought, without the one that always fails', () => {
    expect(listings.length).toBeGreaterThan(0);
    expect(listings.map(({ entry }) => entry.url)).toEqual(sold.map((endpoint) => ORIGIN + pathOn(endpoint, 'paid')));
    expect(JSON.stringify(listings)).not.toContain('selftest');
  });

  test.each(listings.map(({ entry }) => [entry.url.replace(ORIGIN, ''), entry] as const))(
    '%s has the catalogue’s price, and is paid to us on our chain without a gateway',
    (path, entry) => {
      const endpoint = sold.find((one) => pathOn(one, 'paid') === path);
      expect(entrySchema.safeParse({ ...entry, online: true, score: 0 }).error).toBeUndefined();
      expect(entry).toMatchObject({
        method: 'GET',
        priceUsd: endpoint?.price?.usd,
        label: endpoint?.label,
        description: endpoint?.summary,
        payTo: SELLER,
        host: 'percall.example',
        site: ORIGIN,
        source: 'own',
        rail: 'direct',
        direct: null,
        body: null,
        network: NETWORK,
        networks: [NETWORK],
        plainNetworks: [NETWORK],
      });
      expect(entry.params.map(({ name }) => name)).toEqual(Object.keys(endpoint?.params.shape ?? {}));
      for (const param of entry.params) {
        const required = !endpoint?.params.shape[param.name]?.safeParse(undefined).success;
        expect(param).toMatchObject({ in: 'query', required });
        expect(param.description).toMatch(/\w/);
        if (required) expect(param.example).not.toBeNull();
      }
    },
  );

  test('belong to the promised data families', () => {
    const of = (path: string) => listings.find(({ entry }) => entry.url.endsWith(`/v1/paid${path}`))?.entry.category;
    for (const { path } of sold) {
      const [, first = ''] = path.split('/');
      expect([path, of(path)]).toEqual([path, OF_NETWORK.includes(first) ? 'network' : first]);
    }
    expect(['/fees/estimate', '/rpc/health', '/wiki/search'].map(of)).toEqual(['network', 'network', 'wiki']);
  });

  test('are searched by the tags of their endpoints, and one without tags is not among them', () => {
    expect(listings.map(({ keywords }) => keywords)).toEqual(sold.map(({ tags }) => tags));
    expect(entriesOn(catalogue, 'paid').filter(({ tags }) => tags === null)).toHaveLength(1);
  });
});
