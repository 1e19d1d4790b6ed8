import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { defineEndpoint, priceFromUsd } from '../../../src/catalogue/endpoint.ts';
import { listedPath, servedPaths, surfacesOf } from '../../../src/catalogue/paths.ts';

const base = {
  path: '/chain/thing' as const,
  label: 'Thing',
  summary: 'A thing.',
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
