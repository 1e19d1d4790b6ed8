import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { entrySchema, type Listing, type Source } from '../../../src/discovery/entry.ts';
import { type Snapshot, search, searchParams, takeSnapshot } from '../../../src/discovery/search.ts';
import { seed, seededRandom } from '../../support/random.ts';
import { background, listing, NETWORK, ORIGIN, ownListings } from './world.ts';

const opened: Snapshot[] = [];
afterEach(() => {
  for (const snapshot of opened.splice(0)) snapshot.index.close();
});

async function over(gathered: Partial<Record<Source, Listing[]>>): Promise<Snapshot> {
  const snapshot = await takeSnapshot({ own: [], market: [], catalogue: [], ...gathered });
  opened.push(snapshot);
  return snapshot;
}
const everything = () => over({ own: ownListings(), ...background() });

const now = { network: NETWORK, catalogueReadAt: 1_800_000_000, isOnline: () => true };
const find = (snapshot: Snapshot, query: Record<string, string>) =>
  search(snapshot, now, searchParams.parse(query)).result;
const urls = (snapshot: Snapshot, query: Record<string, string>) => find(snapshot, query).results.map(({ url }) => url);

describe('a search', () => {
  test('has the promised members and no others, and so do its entries', async () => {
    const { results, ...top } = find(await everything(), { q: 'wallet', limit: '3' });
    expect(Object.keys(top)).toEqual(['query', 'network', 'count', 'searched', 'catalogueReadAt', 'sources', 'note']);
    expect(top).toMatchObject({ query: 'wallet', network: NETWORK, count: 3, catalogueReadAt: 1_800_000_000 });
    expect(Object.keys(top.sources)).toEqual(['own', 'market', 'catalogue']);
    expect(results).toHaveLength(3);
    for (const entry of results) expect(entrySchema.parse(entry)).toEqual(entry);
    expect(results.every(({ score }) => score > 0)).toBe(true);
  });

  test('says how many entries of each source it searched', async () => {
    const { market, catalogue } = background();
    const { searched } = find(await everything(), { q: 'wallet' });
    expect(searched).toEqual({
      ownRoutes: ownListings().length,
      marketListings: market.length,
      catalogue: catalogue.length,
    });
  });

  test('without a query lists everything by price, then own, market, catalogue, and scores nothing', async () => {
    const { results } = find(await everything(), { limit: '50' });
    const order = results.map(({ priceUsd, source }) => [
      Number(priceUsd),
      ['own', 'market', 'catalogue'].indexOf(source),
    ]);
    expect(order).toEqual([...order].sort(([a = 0, b = 0], [c = 0, d = 0]) => a - c || b - d));
    expect(results).toHaveLength(50);
    expect(new Set(results.map(({ score }) => score))).toEqual(new Set([0]));
    expect(urls(await everything(), { q: '  ', limit: '50' })).toEqual(results.map(({ url }) => url));
  });

  test('compares prices as numbers, whatever their number of digits', async () => {
    const prices = ['0.010', '0.9', '10', '0.0000001', '2'];
    const catalogue = prices.map((priceUsd, n) => listing({ url: `https://a.example/${n}`, priceUsd }));
    const snapshot = await over({ catalogue });
    expect(find(snapshot, {}).results.map(({ priceUsd }) => priceUsd)).toEqual([
      '0.0000001',
      '0.010',
      '0.9',
      '2',
      '10',
    ]);
    expect(find(snapshot, { maxPriceUsd: '0.01' }).results.map(({ priceUsd }) => priceUsd)).toEqual([
      '0.0000001',
      '0.010',
    ]);
    expect(find(snapshot, { maxPriceUsd: '0.0099999999999999999999' }).results).toHaveLength(1);
  });

  test('breaks ties of relevance by price, then own, market, catalogue', async () => {
    const same = (source: Source, host: string, priceUsd: string) =>
      listing({ url: `https://${host}/tide`, description: 'Tide tables', source, priceUsd });
    const others = Array.from({ length: 20 }, (_, n) =>
      listing({ url: `https://o.example/${n}`, description: `Thing ${n}` }),
    );
    const snapshot = await over({
      own: [same('own', 'own.example', '0.02')],
      market: [same('market', 'mar.example', '0.02')],
      catalogue: [same('catalogue', 'cat.example', '0.02'), same('catalogue', 'low.example', '0.01'), ...others],
    });
    const { results } = find(snapshot, { q: 'tide tables' });
    expect(results.map(({ host }) => host)).toEqual(['low.example', 'own.example', 'mar.example', 'cat.example']);
    expect(new Set(results.map(({ score }) => score)).size).toBe(1);
  });

  test('says what is online at this moment', async () => {
    const snapshot = await everything();
    const at = (isOnline: boolean) =>
      search(snapshot, { ...now, isOnline: () => isOnline }, searchParams.parse({ q: 'wallet' })).result.results;
    expect(at(false).map(({ online }) => online)).not.toContain(true);
    expect(at(true).map(({ online }) => online)).not.toContain(false);
  });
});

describe('words', () => {
  let snapshot: Snapshot;
  beforeAll(async () => {
    snapshot = await takeSnapshot({ own: ownListings(), ...background() });
  });
  afterAll(() => snapshot.index.close());

  const one = async (entry: Parameters<typeof listing>[0], keywords = '') => {
    const others = Array.from({ length: 20 }, (_, n) =>
      listing({ url: `https://o.example/${n}`, description: `Thing ${n}` }),
    );
    return over({ catalogue: [listing(entry, keywords), ...others] });
  };

  test.each([
    ['another form of the word', 'calculating', 'A calculation'],
    ['accents', 'cafe', 'Every café in town'],
    ['letter case', 'NASA', 'Pictures by nasa'],
    ['a word that is still being typed', 'volca', 'Active volcanoes'],
    ['a synonym', 'photo', 'An image'],
    ['words among many without a match', 'please find me zebras or quaggas', 'Zebras'],
  ])('are found in spite of %s', async (_what, q, description) => {
    expect(urls(await one({ url: 'https://a.example/x', description }), { q })).toEqual(['https://a.example/x']);
  });

  test.each(['name', 'label', 'description', 'category'])('are searched in the %s', async (field) => {
    const snapshot = await one({ url: 'https://a.example/x', [field]: 'aardvark' });
    expect(urls(snapshot, { q: 'aardvark' })).toEqual(['https://a.example/x']);
  });

  test('are searched in parameters, tags, host and path', async () => {
    const params = [
      { name: 'gnu', in: 'query' as const, type: 'string', description: 'A gnat', required: true, example: null },
    ];
    const snapshot = await one({ url: 'https://koala.example/v1/lemur', params }, 'ibex');
    for (const q of ['gnu', 'gnat', 'ibex', 'koala', 'lemur']) {
      expect([q, urls(snapshot, { q })]).toEqual([q, ['https://koala.example/v1/lemur']]);
    }
  });

  test('in most entries still find them, by price', async () => {
    const catalogue = ['0.3', '0.1', '0.2'].map((priceUsd, n) =>
      listing({ url: `https://a.example/${n}`, description: 'Tides', priceUsd }),
    );
    expect(find(await over({ catalogue }), { q: 'tides' }).results.map(({ priceUsd }) => priceUsd)).toEqual([
      '0.1',
      '0.2',
      '0.3',
    ]);
  });

  test('an entry that hardly matches is left out', async () => {
    const snapshot = await everything();
    const { results } = find(snapshot, { q: 'weather forecast for the weekend', limit: '50' });
    expect(results.length).toBeLessThan(20);
    const best = results[0]?.score ?? 0;
    expect(Math.min(...results.map(({ score }) => score))).toBeGreaterThanOrEqual(best * 0.25);
  });

  test.each([
    ...[
      '"',
      '"""',
      "'",
      'AND',
      'OR NOT',
      'NEAR(',
      'NEAR(a b, 2)',
      'name:wallet',
      '{name label}: wallet',
      '^wallet',
      'wallet*',
    ],
    ...[
      '-wallet',
      '(wallet',
      ')',
      'wallet + +',
      '\\',
      '\u0000',
      '\ud800',
      '%',
      '_',
      '; DROP TABLE entries; --',
      'a"b"c',
      '::',
      '*',
    ],
    ...['constructor', '__proto__', 'x'.repeat(200), '"'.repeat(200), '(("'.repeat(60), 'wallet\u0000" OR "'],
  ])('a query has no syntax: %j', async (q) => {
    expect(() => find(snapshot, { q })).not.toThrow();
    const { results } = find(snapshot, { q });
    if (/^\W*wallet\W*$/.test(q)) expect(results[0]?.description).toMatch(/balances|wallet/i);
  });

  test(`no random query breaks a search (seed ${seed})`, () => {
    const random = seededRandom('queries');
    const parts = [
      '"',
      '*',
      '(',
      ')',
      ':',
      '^',
      '-',
      '+',
      'NEAR',
      'AND',
      'OR',
      'NOT',
      ',',
      ' ',
      'wallet',
      'é',
      '\u0000',
      '{',
      '}',
      '\ud83d',
      '0x',
      '𝟙',
    ];
    for (let n = 0; n < 500; n++) {
      const q = Array.from({ length: 30 }, () => parts[Math.floor(random() * parts.length)])
        .join('')
        .slice(0, 200);
      expect(() => find(snapshot, { q }), q).not.toThrow();
    }
  });
});

describe('limits', () => {
  test('by source, seller, category and network, letter case apart', async () => {
    const snapshot = await everything();
    const all = (query: Record<string, string>) => find(snapshot, { limit: '50', ...query }).results;
    expect(all({ source: 'own' }).map(({ source }) => source)).toEqual(ownListings().map(() => 'own'));
    expect(all({ source: 'market' }).every(({ source }) => source === 'market')).toBe(true);
    expect(all({ seller: 'Oddsbook.example' })).toHaveLength(7);
    expect(all({ seller: `0X${'5E'.repeat(20)}` })).toHaveLength(ownListings().length);
    expect(new Set(all({ category: 'predicTION_markets' }).map(({ host }) => host))).toEqual(
      new Set(['oddsbook.example']),
    );
    expect(
      all({ category: 'packages' })
        .map(({ name }) => name)
        .sort(),
    ).toEqual(['packages/npm', 'packages/pypi', 'packages/vulns']);
    expect(all({ network: 'EIP155:5042' })).toHaveLength(50);
    expect(all({ network: 'eip155:8453' })).toEqual([]);
    expect(all({ seller: 'nobody.example' })).toEqual([]);
  });

  test('a network is any that the seller accepts', async () => {
    const networks = [NETWORK, 'eip155:8453'];
    const snapshot = await over({
      catalogue: [listing({ url: 'https://a.example/x', networks }), listing({ url: 'https://b.example/x' })],
    });
    expect(urls(snapshot, { network: 'eip155:8453' })).toEqual(['https://a.example/x']);
  });

  test('combine, with a query too, and return the best of the rest', async () => {
    const snapshot = await everything();
    const { results } = find(snapshot, { q: 'wallet', maxPriceUsd: '0.004', source: 'catalogue' });
    expect(results.length).toBeGreaterThan(0);
    for (const { source, priceUsd } of results)
      expect([source, Number(priceUsd) <= 0.004]).toEqual(['catalogue', true]);
    expect(urls(snapshot, { q: 'wallet', limit: '1' })).toEqual(urls(snapshot, { q: 'wallet' }).slice(0, 1));
  });
});

describe('an entry of several sources', () => {
  const at = (source: Source, url: string, label = source) => listing({ url, source, label });

  test('is listed once per host and path, by the better source', async () => {
    const snapshot = await over({
      own: [at('own', 'https://a.example/v1/x')],
      market: [at('market', 'https://b.example/v1/y/{id}')],
      catalogue: [
        at('catalogue', 'https://B.example/v1/y/{name}/?a=1'),
        at('catalogue', 'https://b.example/v1/z'),
        at('catalogue', 'http://b.example/v1/z'),
      ],
    });
    expect(snapshot.listings.map(({ entry }) => [entry.source, entry.url]).sort()).toEqual([
      ['catalogue', 'https://b.example/v1/z'],
      ['market', 'https://b.example/v1/y/{id}'],
      ['own', 'https://a.example/v1/x'],
    ]);
    expect(snapshot.counts).toEqual({ own: 1, market: 1, catalogue: 1 });
  });

  test('of one source is a different entry when method or query differ', async () => {
    const catalogue = [
      at('catalogue', 'https://b.example/x'),
      { ...at('catalogue', 'https://b.example/x'), keywords: 'again' },
      listing({ url: 'https://b.example/x', method: 'POST' }),
      at('catalogue', 'https://b.example/x?kind=a'),
    ];
    expect((await over({ catalogue })).listings).toHaveLength(3);
  });

  test('of our own host is ours alone: no third party lists the route that always fails', async () => {
    const own = ownListings();
    const catalogue = [`${ORIGIN}/v1/paid/selftest/fail`, `${ORIGIN}/v1/paid/arc/wallet`].map((url) =>
      at('catalogue', url),
    );
    const snapshot = await over({ own, catalogue });
    expect(snapshot.counts).toEqual({ own: own.length, market: 0, catalogue: 0 });
    expect(urls(snapshot, { q: 'selftest fail', limit: '50' }).join()).not.toContain('selftest');
  });
});
