import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { entrySchema } from '../../../src/discovery/entry.ts';
import { readCatalogueItem } from '../../../src/discovery/foreign-catalogue.ts';
import { CHAIN, gateway, item, PAY_TO, plain } from '../../support/market/catalogue.ts';

const read = (one: unknown) => readCatalogueItem(one, CHAIN);

describe('an item of a catalogue', () => {
  test('becomes an entry with every field', () => {
    const provider = {
      name: 'Tides Inc',
      description: 'All about the sea',
      category: 'DATA',
      tags: ['sea', 'tide'],
      website: 'https://tides.example/about',
    };
    const input = {
      type: 'object',
      required: ['port'],
      properties: {
        port: { type: 'string', description: 'Which <b>port</b>', examples: ['Brest'] },
        days: { type: ['integer', 'null'], default: 3 },
      },
    };
    const output = { type: 'object', properties: { highWater: {} } };
    const one = item(1, [gateway(), plain({ amount: '4000' })], {
      provider,
      input,
      output,
      mimeType: 'application/json',
    });
    expect(read(one)).toEqual({
      entry: {
        url: 'https://seller1.example/v1/thing',
        method: 'GET',
        priceUsd: '0.005',
        name: '/v1/thing',
        label: 'Tides Inc',
        description: 'Thing 1',
        payTo: PAY_TO,
        host: 'seller1.example',
        category: 'DATA',
        params: [
          { name: 'port', in: 'query', type: 'string', description: 'Which port', required: true, example: 'Brest' },
          { name: 'days', in: 'query', type: 'integer', description: '', required: false, example: 3 },
        ],
        network: CHAIN.network,
        rail: 'gateway',
        source: 'catalogue',
        site: 'https://tides.example/about',
        direct: { url: 'https://seller1.example/v1/thing', priceUsd: '0.004' },
        body: null,
        networks: [CHAIN.network],
        plainNetworks: [],
      },
      keywords: 'sea tide All about the sea highWater',
    });
  });

  test('with the fewest members is still an entry', () => {
    const entry = read({ resource: 'https://a.example/x/{id}', accepts: [plain()] })?.entry;
    expect(entry).toMatchObject({
      method: 'GET',
      name: '/x/{id}',
      label: 'a.example',
      description: '',
      category: '',
      site: 'https://a.example',
      params: [{ name: 'id', in: 'path', type: 'string', required: true, example: null }],
    });
    expect(entrySchema.safeParse({ ...entry, online: true, score: 0 }).error).toBeUndefined();
  });

  test('of a POST has its parameters in the body, and an example of it', () => {
    const properties = {
      text: { type: 'string', example: 'Hello' },
      to: { type: 'string', default: 'de' },
      opts: { type: 'object' },
    };
    const post = read(item(1, [plain()], { method: 'post', input: { properties } }))?.entry;
    expect(post?.params.map((param) => param.in)).toEqual(['body', 'body', 'body']);
    expect([post?.method, post?.body]).toEqual(['POST', { text: 'Hello', to: 'de' }]);
    const example = { text: 'Hi' };
    expect(read(item(1, [plain()], { method: 'POST', input: { properties, example } }))?.entry.body).toEqual(example);
    expect(read(item(1, [plain()], { method: 'POST' }))?.entry.body).toBeNull();
    expect(read(item(1, [plain()], { input: { properties, example } }))?.entry.body).toBeNull();
  });

  test.each([
    [
      'x402 version 1',
      { accepts: [plain({ outputSchema: { input: { queryParams: { q: { type: 'string', required: true } } } } })] },
    ],
    [
      'the Bazaar',
      { accepts: [plain()], extensions: { bazaar: { info: { input: { method: 'GET', queryParams: { q: 'tea' } } } } } },
    ],
    [
      'Circle, in groups',
      { accepts: [plain()], metadata: { input: { queryParams: { properties: { q: {} }, required: ['q'] } } } },
    ],
  ])('has its parameters when it describes them like %s', (_what, parts) => {
    const params = read({ resource: 'https://a.example/x', ...parts })?.entry.params;
    expect(params).toEqual([expect.objectContaining({ name: 'q', in: 'query' })]);
  });

  test.each([
    ['nothing that is payable on our chain', item(1, [plain({ network: 'eip155:1' })])],
    ['no accepts', { resource: 'https://a.example/x' }],
    ['no address', { accepts: [plain()] }],
    ['a script for an address', { resource: 'javascript:alert(1)', accepts: [plain()] }],
    ['an address of this machine', { resource: 'http://127.0.0.1/x', accepts: [plain()] }],
    ['another method', item(1, [plain()], { method: 'DELETE' })],
    ['a method that is no text', item(1, [plain()], { method: { x: 1 } })],
    ['null', null],
    ['a number', 7],
    ['a list', [item(1)]],
  ])('with %s is left out', (_what, one) => {
    expect(read(one)).toBeNull();
  });

  test('hostile in every member becomes plain, bounded and valid', () => {
    const evil = `<script>alert(1)</script>\u0000\u202e${'x'.repeat(5000)}`;
    const deep = JSON.parse(`${'{"a":'.repeat(200)}1${'}'.repeat(200)}`);
    const fields = Object.fromEntries(
      Array.from({ length: 60 }, (_, n) => [`p${n}`, { type: evil, description: evil, example: deep }]),
    );
    const properties = { ...fields, '<b>': {}, 'a b': {}, [evil]: {}, constructor: { example: evil } };
    const provider = {
      name: evil,
      description: evil,
      category: evil,
      tags: Array(50).fill(evil),
      website: 'javascript:x',
    };
    const metadata = JSON.parse(
      JSON.stringify({
        method: 'POST',
        path: evil,
        description: evil,
        provider,
        input: { properties, example: { a: evil, __proto__x: deep } },
      }).replace('__proto__x', '__proto__'),
    );
    const one = read({ ...item(1, [plain()]), metadata });
    const entry = one?.entry;
    expect(entrySchema.safeParse({ ...entry, online: true, score: 0 }).error).toBeUndefined();
    const text = JSON.stringify(one);
    expect(text.length).toBeLessThan(20_000);
    expect(text).not.toMatch(/[<>]|\\u0000|\u202e/);
    expect(entry?.params.length).toBeLessThanOrEqual(20);
    expect(entry?.site).toBe('https://seller1.example');
    expect(({} as Record<string, unknown>).a).toBeUndefined();
  });
});

const SAMPLES = new URL('../../../../shared/samples/x402/', import.meta.url);
const sample = (name: string) => JSON.parse(readFileSync(new URL(name, SAMPLES), 'utf8'));
/** Documented examples are of other chains. Here they are changed to ours, with a recipient of forty digits where the documentation has fewer. */
const moved = (one: { accepts: object[] }) => ({
  ...one,
  accepts: one.accepts.map((accept) => ({ ...accept, network: CHAIN.network, asset: CHAIN.usdc, payTo: PAY_TO })),
});

describe.skipIf(!existsSync(SAMPLES))('a documented example', () => {
  test('of Circle is read, once its recipient is an address', () => {
    const [one] = sample('circle-discovery-resources-example.json').items;
    expect(read(one)).toBeNull();
    expect(read({ ...moved(one), accepts: [{ ...moved(one).accepts[0], payTo: one.accepts[0].payTo }] })).toBeNull();
    const found = read(moved(one));
    expect(found?.entry).toMatchObject({
      url: 'https://api.aisa.one/apis/v2/coingecko/simple/price',
      label: 'AIsa API',
      priceUsd: '0.01',
      rail: 'gateway',
      category: 'FINANCIAL_ANALYSIS',
      site: 'https://aisa.one',
      description: 'Get cryptocurrency prices in multiple currencies',
    });
    expect(found?.entry.params.map(({ name }) => name)).toEqual(['ids', 'vs_currencies']);
    expect(found?.keywords).toContain('cryptocurrency');
  });

  test('of Coinbase and of version 1 is read too', () => {
    const [cdp] = sample('cdp-discovery-resources-example.json').items;
    expect(read(moved(cdp))?.entry).toMatchObject({ label: 'Weather API', priceUsd: '1', rail: 'direct' });
    const legacy = sample('bazaar-item-legacy-maxAmountRequired.json');
    expect(read(moved(legacy))?.entry).toMatchObject({
      url: 'https://api.example.com/x402/weather',
      priceUsd: '0.0002',
    });
  });

  test('of a seller on Arc is payable plainly', () => {
    const { accepts } = sample('402-body-arc-plain.json');
    expect(read({ resource: 'https://a.example/x', accepts })?.entry).toMatchObject({
      rail: 'direct',
      priceUsd: '0.005',
    });
  });
});
