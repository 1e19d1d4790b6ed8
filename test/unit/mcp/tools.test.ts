import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { describe, expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import type { SearchParams, SearchResult } from '../../../src/discovery/search.ts';
import type { Sources } from '../../../src/endpoints/sources.ts';
import { NotFound } from '../../../src/errors.ts';
import { instructionsFor } from '../../../src/mcp/listing.ts';
import { createToolList } from '../../../src/mcp/mount.ts';
import { problem } from '../../../src/mcp/results.ts';
import { LIGHTNING_ADDRESS, MAIN_ADDRESS, toolName } from '../../../src/mcp/tool.ts';
import { createTools, type ToolsDeps } from '../../../src/mcp/tools.ts';
import { acceptsOf, createUsdcCheckout } from '../../../src/payment/checkout.ts';
import { createOffer, toolProtocol, wordsOfRefusal } from '../../../src/wiring/surfaces.ts';
import { createManualClock } from '../../support/manual-clock.ts';
import { runningWith } from '../../support/payment/call.ts';
import { priceOf } from '../../support/prices.ts';
import { PLAIN_RAILS, TERMS } from '../../support/service/terms.ts';

const deps: ToolsDeps<Sources> = {
  catalogue,
  chain: { name: 'Arc', isPlayMoney: true },
  network: 'eip155:5042',
  clock: createManualClock(0),
  handlerTimeoutMs: 1000,
  sources: {} as Sources,
  publicOrigin: 'https://api.example.com',
  protocol: toolProtocol,
  isLightning: () => false,
  checkoutOf: (endpoint) =>
    createUsdcCheckout(endpoint, {
      offer: () => createOffer(endpoint, { ...TERMS, rails: PLAIN_RAILS }),
      railFor: () => {
        throw new Error('this test sells nothing');
      },
      write: acceptsOf,
      running: runningWith({} as Sources),
      words: wordsOfRefusal,
    }),
  words: wordsOfRefusal,
  search: null,
};
const tools = createTools(deps);
const listed = createToolList(tools, MAIN_ADDRESS).listed(true);
const inBitcoin = createToolList(tools, LIGHTNING_ADDRESS);
const ajv = new AjvJsonSchemaValidator();
const call = {
  address: MAIN_ADDRESS,
  client: 'a',
  identity: 'a',
  requestId: 'r',
  signal: new AbortController().signal,
  onSent: () => {},
};

describe('the tools', () => {
  test('name the chain where they read one, so that a model does not ask them about another', () => {
    const named = listed.filter(({ description = '' }) =>
      description.includes(' Of Arc (demo, play money), no other chain.'),
    );
    const about = /^(free|paid)_(network|fees|activity|deploys|rpc|fx|token|health|market|chain)(_|$)/;
    expect(named.map(({ name }) => name)).toEqual([...tools.keys()].filter((name) => about.test(name)));
    expect(named.length).toBeGreaterThan(15);
  });

  test('have these names, in the catalogue’s order, because clients store the names', () => {
    expect([...tools.keys()]).toEqual(catalogue.map(({ access, path }) => access + path.replaceAll('/', '_')));
    expect([...tools.keys()]).toEqual(
      expect.arrayContaining(['free_network', 'free_fees_estimate', 'paid_fees_estimate', 'paid_selftest_fail']),
    );
    expect(listed).toHaveLength(catalogue.length);
    for (const { name } of listed) expect(name).toMatch(/^[a-z0-9_]{1,64}$/);
  });

  test('with equal names stop the start', () => {
    expect(() => createTools({ ...deps, catalogue: [...catalogue, ...catalogue.slice(0, 1)] })).toThrow('two tools');
  });

  test('state their price in text and as data, equal to the catalogue’s, and only if they have one', () => {
    for (const [at, { description, annotations, _meta: meta }] of listed.entries()) {
      const { price, summary } = catalogue[at]!;
      expect(description).toContain(summary);
      expect(description).toContain(price ? `Costs ${price.usd} USD` : 'Free.');
      expect(meta?.['percall/price']).toEqual(price ? { priceUsd: price.usd, rails: expect.any(Array) } : undefined);
      // A tool that spends is not read-only.
      expect(annotations?.readOnlyHint).toBe(price === null);
    }
  });

  test('name the currency and the network of the address where they are listed, and no other', () => {
    const about = (all: typeof listed, tool: string) => all.find(({ name }) => name === tool)?.description ?? '';
    const { usd } = priceOf('/chain/wallet');
    const [usdc, sats] = [about(listed, 'paid_chain_wallet'), about(inBitcoin.listed(false), 'paid_chain_wallet')];
    expect(usdc).toContain(`Costs ${usd} USDC a call, paid on Arc (demo, play money) (eip155:5042).`);
    expect(sats).toContain(`Costs ${usd} USD a call, paid in bitcoin over Lightning.`);
    expect([/bitcoin|lightning/i.test(usdc), /eip155/.test(sats)]).toEqual([false, false]);
    expect(about(listed, 'paid_market_prices')).toContain('paid in bitcoin over Lightning.');
  });

  test('say what comes back and what they are not for', () => {
    for (const [at, { description }] of listed.entries()) {
      const members = Object.keys(catalogue[at]!.result.shape).join(', ');
      if (members) expect(description).toContain(` Answers JSON: ${members}.`);
      expect(description).toMatch(/ Not for [^.]{8,110}\. /);
    }
  });

  test('never ask a model for what only the program around it can set', () => {
    for (const { description } of [...listed, ...inBitcoin.listed(false)])
      expect(description).not.toMatch(/_meta|PAYMENT-|x402/);
    for (const address of [MAIN_ADDRESS, LIGHTNING_ADDRESS]) {
      const [model = '', program = ''] = instructionsFor(deps.chain, deps.publicOrigin, address).split(
        'For the program:',
      );
      expect(model).not.toContain('_meta');
      expect(program).toContain('_meta["x402/payment"]');
    }
  });

  test('are listed in at most 40 KB at both addresses, because a model reads the whole list before its first call', () => {
    const withSearch = createTools({ ...deps, search: { search: async () => ({}) } });
    for (const address of [MAIN_ADDRESS, LIGHTNING_ADDRESS]) {
      const list = createToolList(withSearch, address);
      const bytes = (isFull: boolean) => Buffer.byteLength(JSON.stringify({ tools: list.listed(isFull) }));
      expect(bytes(false)).toBeLessThanOrEqual(40_000);
      expect(bytes(true)).toBeGreaterThan(100_000);
      expect(list.listed(false).filter(({ outputSchema }) => outputSchema)).toEqual([]);
      expect(list.listed(true).filter(({ outputSchema }) => !outputSchema)).toEqual([]);
    }
  });

  test('are all listed at the main address, and at that of Lightning those that bitcoin buys', () => {
    const left = [...tools.keys()].filter((name) => !inBitcoin.tools.has(name));
    expect(left).toEqual(catalogue.filter(({ onlyOn }) => onlyOn === 'paid').map(toolName));
    expect(left).toEqual(['paid_selftest_fail']);
  });

  test('name free tools that exist', () => {
    const named = listed.flatMap(({ description }) => description?.match(/free_\w+/g) ?? []);
    expect(named.length).toBeGreaterThan(0);
    for (const name of named) expect([...tools.keys()]).toContain(name);
  });

  test('have an input schema that accepts their example and refuses what the parser refuses', () => {
    for (const [at, { name, inputSchema }] of listed.entries()) {
      const { params } = catalogue[at]!.example;
      const integers = Object.entries(params).map(([key, value]) => {
        const { type } = inputSchema.properties![key] as { type?: string };
        return [key, type === 'integer' ? Number(value) : value];
      });
      const validate = ajv.getValidator(inputSchema as never);
      expect([name, validate(Object.fromEntries(integers)).errorMessage]).toEqual([name, undefined]);
      expect([name, validate({ nonsense: '1' }).valid]).toEqual([name, false]);
    }
  });

  test('have an output schema that accepts their example and a failure, because official clients check both', () => {
    const failure = problem(new NotFound('nothing there'), 'r').structuredContent;
    for (const [at, { name, outputSchema }] of listed.entries()) {
      const { example } = catalogue[at]!;
      const validate = ajv.getValidator(outputSchema as never);
      expect([name, validate(failure).errorMessage]).toEqual([name, undefined]);
      expect([name, validate({ nonsense: 1 }).valid]).toEqual([name, false]);
      expect([name, validate(example.result).errorMessage]).toEqual([name, undefined]);
    }
  });

  test('sold for USDC demand payment in the form of their schema', async () => {
    // Checks that need the configuration are left out; all other checks of the arguments run.
    const anywhere = catalogue.map((endpoint) => ({ ...endpoint, checkParams: () => {} }));
    for (const [at, { name, outputSchema, run }] of [
      ...createTools({ ...deps, catalogue: anywhere }).values(),
    ].entries()) {
      const { price, onlyOn, example } = catalogue[at]!;
      if (!price || onlyOn === 'lightning') continue;
      const result = await run({ ...call, arguments: example.params, meta: undefined });
      expect(result.isError).toBe(true);
      const { accepts, resource } = result.structuredContent as { accepts: { amount: string }[]; resource: object };
      expect(accepts.map(({ amount }) => amount)).toEqual([price.units.toString()]);
      expect(resource).toMatchObject({ url: `mcp://tool/${name}` });
      expect(ajv.getValidator(outputSchema() as never)(result.structuredContent).errorMessage).toBeUndefined();
      const [sentence, data] = result.content.map((content) => (content as { text: string }).text);
      expect(sentence).toBe(
        `${name} is not paid for yet, and nothing was charged. It costs ${price.usd} USDC on Arc (demo, play money): a client with a USDC wallet pays it by the terms below, and then makes the same call again.`,
      );
      expect(JSON.parse(data!)).toEqual(result.structuredContent);
    }
  });
});

describe('the search', () => {
  const entry = {
    url: 'https://seller.example/dns/{name}',
    method: 'GET' as const,
    priceUsd: '0.001',
    name: 'DNS',
    label: 'DNS',
    description: 'Records',
    params: [
      { name: 'name', in: 'path' as const, type: 'string', description: '', required: true, example: ['a', { b: 1 }] },
    ],
    payTo: '0x5e',
    host: 'seller.example',
    network: 'eip155:5042',
    rail: 'direct' as const,
    direct: null,
    body: { nested: [null] },
    source: 'market' as const,
    category: 'domains',
    site: 'https://seller.example',
    networks: ['eip155:5042'],
    plainNetworks: ['eip155:5042'],
    online: true,
    score: 1.5,
  };
  const answerTo = ({ q, limit }: SearchParams): SearchResult => ({
    query: `${q} ${limit}`,
    network: 'eip155:5042',
    count: 1,
    searched: { ownRoutes: 0, marketListings: 1, catalogue: 0 },
    catalogueReadAt: null,
    sources: { own: 'ours', market: 'theirs', catalogue: 'others' },
    results: [entry],
    note: 'note',
  });
  const [tool] = createTools({ ...deps, search: { search: async (params) => answerTo(params) } }).values();
  if (!tool) throw new Error('no tools');
  const shown = { ...tool.listedAt(MAIN_ADDRESS)!, outputSchema: tool.outputSchema() };

  test('is absent while there is none, and otherwise comes first', () => {
    expect(tools.has('market_search')).toBe(false);
    expect(shown.name).toBe('market_search');
    for (const property of Object.values(shown.inputSchema.properties ?? {}))
      expect((property as { description: string }).description).not.toBe('');
  });

  test('answers like the route, with the listed price, in the form of its schema', async () => {
    const found = await tool.run({ ...call, arguments: { q: 'dns', limit: 3 }, meta: undefined });
    expect(found.structuredContent).toEqual(answerTo({ q: 'dns', limit: 3, offset: 0 }));
    expect(JSON.parse((found.content[0] as { text: string }).text)).toEqual(found.structuredContent);
    const validate = ajv.getValidator(shown.outputSchema as never);
    expect(validate(found.structuredContent).errorMessage).toBeUndefined();
    expect(validate({ ...found.structuredContent, results: [{ ...entry, priceUsd: 1 }] }).valid).toBe(false);
  });

  test('refuses unknown parameters', async () => {
    await expect(tool.run({ ...call, arguments: { query: 'dns' }, meta: undefined })).rejects.toThrow('query');
  });
});
