import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { defineEndpoint, priceFromUsd } from '../../../src/catalogue/endpoint.ts';
import { entriesOn, listedPath, servedPaths, surfacesOf } from '../../../src/catalogue/paths.ts';

const base = {
  path: '/chain/thing' as const,
  label: 'Thing',
  summary: 'A thing.',
  notFor: null,
  tags: null,
  ofChain: true,
  params: z.object({}),
  result: z.object({}),
  example: { params: {}, result: {} },
  run: async () => ({}),
};

describe('defineEndpoint', () => {
  it('refuses a paid endpoint without a price, and a free one with a price', () => {
    expect(() => defineEndpoint({ ...base, access: 'paid' })).toThrow(/a price belongs/);
    expect(() => defineEndpoint({ ...base, access: 'free', priceUsd: '0.001' })).toThrow(/a price belongs/);
    expect(defineEndpoint({ ...base, access: 'paid', priceUsd: '0.001' }).price).toEqual({
      usd: '0.001',
      units: 1000n,
    });
    expect(defineEndpoint({ ...base, access: 'free' }).price).toBeNull();
  });

  it('takes no entry without what it is not for, its tags or its chain: such a file does not compile', () => {
    const { notFor: _1, ...sayingLess } = base;
    const { tags: _2, ...untagged } = base;
    const { ofChain: _3, ...ofNoChain } = base;
    // @ts-expect-error notFor is missing
    defineEndpoint({ ...sayingLess, access: 'free' });
    // @ts-expect-error tags is missing
    defineEndpoint({ ...untagged, access: 'free' });
    // @ts-expect-error ofChain is missing
    defineEndpoint({ ...ofNoChain, access: 'free' });
  });
});

describe('priceFromUsd', () => {
  it.each([
    ['0.0005', 500n],
    ['0.001', 1000n],
    ['0.000001', 1n],
    ['1', 1_000_000n],
    ['999999.999999', 999_999_999_999n],
  ])('converts %s to base units exactly', (usd, units) => {
    expect(priceFromUsd(usd).units).toBe(units);
  });

  it.each(['', '0', '0.000000', '0.0000001', '-1', '+1', '1.', '.1', '1e-3', '0,001', ' 1'])('refuses %j', (usd) => {
    expect(() => priceFromUsd(usd)).toThrow();
  });
});

describe('paths', () => {
  it("are served as listed, and chain routes under the network's own segment too", () => {
    expect(servedPaths({ path: '/chain/thing', access: 'paid' }, 'paid', 'arc')).toEqual([
      '/v1/paid/chain/thing',
      '/v1/paid/arc/thing',
    ]);
    expect(servedPaths({ path: '/chain/thing', access: 'free' }, 'free', 'chain')).toEqual(['/v1/chain/thing']);
    expect(servedPaths({ path: '/chainsaw', access: 'free' }, 'free', 'arc')).toEqual(['/v1/chainsaw']);
  });
});

describe('the catalogue', () => {
  it('says of every entry what it is not for', () => {
    expect(catalogue.filter(({ notFor }) => !notFor).map(({ path }) => path)).toEqual([]);
  });

  it('says that an entry tells of the chain where its source is the chain, and only there', () => {
    for (const { path, ofChain, example } of catalogue) {
      const { name = '' } = (example.result.source ?? {}) as { name?: string };
      expect([path, ofChain]).toEqual([path, name.includes('eip155:5042')]);
    }
  });

  it('has tags for every route that is sold for USDC, but for the one that always fails', () => {
    const sold = entriesOn(catalogue, 'paid');
    const untagged = sold.filter(({ tags }) => !tags);
    expect(untagged.map(({ path, tags }) => [path, tags])).toEqual([['/selftest/fail', null]]);
    expect(catalogue.filter((entry) => !sold.includes(entry) && entry.tags !== null)).toEqual([]);
  });

  it('lists no path twice', () => {
    const served = catalogue.flatMap((endpoint) =>
      surfacesOf(endpoint).flatMap((surface) => servedPaths(endpoint, surface, 'arc')),
    );
    expect(new Set(served).size).toBe(served.length);
  });

  it.each(catalogue.map((endpoint) => [listedPath(endpoint), endpoint] as const))(
    'gives %s an example that its own schemas accept',
    (_path, endpoint) => {
      expect(endpoint.params.safeParse(endpoint.example.params).error).toBeUndefined();
      expect(endpoint.result.safeParse(endpoint.example.result).error).toBeUndefined();
    },
  );

  it('names only free summaries that exist', () => {
    const free = catalogue.filter(({ access }) => access === 'free').map(listedPath);
    for (const { freeSummary } of catalogue) if (freeSummary) expect(free).toContain(freeSummary);
  });
});
