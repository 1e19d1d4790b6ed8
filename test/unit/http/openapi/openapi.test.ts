import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { DiscoveryDocument, validate } from 'mppx/discovery';
import { describe, expect, it } from 'vitest';
import { z } from 'zod';
import { catalogue } from '../../../../src/catalogue/catalogue.ts';
import type { Endpoint } from '../../../../src/catalogue/endpoint.ts';
import { entriesOn, listedPath, pathOn } from '../../../../src/catalogue/paths.ts';
import { loadConfig } from '../../../../src/config.ts';
import { createLlmsText } from '../../../../src/http/documents.ts';
import { createOpenApi } from '../../../../src/http/openapi/openapi.ts';
import { pricedOnly } from '../../../../src/http/openapi/text.ts';
import { TOOL_ROUTES } from '../../../../src/mcp/mount.ts';
import { DECLARED } from '../../../../src/routes/meta.ts';
import { offersUnder } from '../../../../src/wiring/surfaces.ts';
import { ENV } from '../../../http/harness.ts';
import { dearest } from '../../../support/prices.ts';

interface Operation {
  operationId: string;
  description?: string;
  tags: string[];
  parameters?: {
    in: string;
    name: string;
    required: boolean;
    description?: string;
    example?: unknown;
    schema: Record<string, unknown>;
  }[];
  responses: Record<
    string,
    {
      description: string;
      headers?: Record<string, unknown>;
      content?: Record<string, { schema: Record<string, unknown>; example?: unknown }>;
    }
  >;
  security?: unknown;
  'x-payment-info'?: unknown;
}
interface Document {
  openapi: string;
  info: { version: string; description: string; contact: object; 'x-guidance': string };
  externalDocs: { url: string };
  servers: { url: string }[];
  tags: { name: string }[];
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, unknown>; securitySchemes: Record<string, unknown> };
}

const ROOT = new URL('../../../../', import.meta.url);
const config = loadConfig(ENV);
const offerOf = offersUnder(config);
const requirementOf = (endpoint: Endpoint<never>) => offerOf(endpoint).requirement;
const options = {
  catalogue,
  declared: [...DECLARED, ...TOOL_ROUTES],
  requirementOf,
  chain: { name: 'Arc', isPlayMoney: false },
  publicOrigin: 'https://here.example',
};
const document = (await createOpenApi(options)) as unknown as Document;
const byMpp = (await createOpenApi({ ...options, mpp: true })) as unknown as Document;
type Answer = Operation['responses'][string];
/** Resolves the references of a value, at any depth. */
function resolved(value: unknown, within: Document): unknown {
  if (Array.isArray(value)) return value.map((one) => resolved(one, within));
  if (typeof value !== 'object' || value === null) return value;
  const { $ref } = value as { $ref?: string };
  if ($ref === undefined) {
    return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, resolved(one, within)]));
  }
  const target = $ref
    .slice(2)
    .split('/')
    .reduce<unknown>((at, step) => (at as Record<string, unknown>)[step], within);
  return resolved(target, within);
}
const operationIn = (within: Document, path: string): Operation => {
  const operation = within.paths[path]?.get as Operation;
  const answers = resolved(operation.responses, within) as Record<string, Answer>;
  return { ...operation, responses: answers };
};
const operationOf = (path: string) => operationIn(document, path);
const paid = entriesOn(catalogue, 'paid');
const sold = entriesOn(catalogue, 'lightning');

describe('the OpenAPI document', () => {
  it('is of the declared version, with tags and the server of this configuration', () => {
    expect(document).toMatchObject({
      openapi: '3.1.0',
      info: { version: '0.1.0' },
      servers: [{ url: 'https://here.example' }],
    });
  });

  it('states for every operation that it needs no account and no key: a security scheme is a payment, and another way to pay stands beside it', () => {
    const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
    expect(operations.length).toBeGreaterThan(catalogue.length);
    for (const { operationId, security, tags } of operations) {
      const expected = tags.includes('lightning') ? [{}, { L402: [] }, { Payment: [] }] : [];
      expect([operationId, security]).toEqual([operationId, expected]);
    }
    expect(document.components.securitySchemes).toMatchObject({
      x402: { type: 'apiKey', in: 'header', name: 'PAYMENT-SIGNATURE' },
      L402: { type: 'http', scheme: 'L402' },
      Payment: { type: 'http', scheme: 'Payment' },
    });
  });

  it('has the text of llms.txt as guidance for agents', () => {
    expect(document.info['x-guidance']).toBe(createLlmsText(options));
    expect(document.externalDocs.url).toBe('https://here.example/llms.txt');
  });

  it.each([
    [undefined, { url: 'https://here.example' }],
    [null, { url: 'https://here.example' }],
    ['https://operator.example/contact', { url: 'https://operator.example/contact' }],
    ['mailto:data@operator.example?subject=percall', { email: 'data@operator.example' }],
  ])('names who runs it: %s', async (contactUrl, contact) => {
    const document = await createOpenApi({
      ...options,
      catalogue: [],
      ...(contactUrl !== undefined && { contactUrl }),
    });
    expect((document as unknown as Document).info.contact).toEqual(contact);
  });

  it('describes the 503 of health as its own body, and every other 503 as a problem alone', () => {
    const contentOf = (path: string) => Object.keys(operationOf(path).responses['503']?.content ?? {});
    expect(contentOf('/v1/health')).toEqual(['application/json', 'application/problem+json']);
    expect(contentOf('/v1/fees')).toEqual(['application/problem+json']);
    const { responses } = operationOf('/v1/health');
    expect(responses['503']?.content?.['application/json']?.schema).toEqual(
      responses['200']?.content?.['application/json']?.schema,
    );
  });

  it('has every catalogue entry under its listed path, and no unlisted spelling', () => {
    const paths = Object.keys(document.paths);
    expect(paths).toEqual(expect.arrayContaining(catalogue.map(listedPath)));
    const forBitcoin = paths.filter((path) => path.startsWith('/v1/lightning/'));
    expect(forBitcoin.sort()).toEqual(sold.map((endpoint) => pathOn(endpoint, 'lightning')).sort());
    expect(paths).toEqual(expect.arrayContaining(['/v1/paid', '/openapi.json', '/livez', '/readyz']));
    expect(paths.filter((path) => path.includes('/arc/'))).toEqual([]);
    const ids = paths.flatMap((path) => Object.values(document.paths[path] ?? {}).map((entry) => entry.operationId));
    expect(new Set(ids).size).toBe(ids.length);
  });

  it.each(paid.map((endpoint) => [pathOn(endpoint, 'paid'), endpoint] as const))(
    'states for %s its price and how it is paid',
    (path, endpoint) => {
      const operation = operationOf(path);
      const amount = endpoint.price?.units.toString();
      expect(operation['x-payment-info']).toEqual({
        price: { mode: 'fixed', currency: 'USD', amount: endpoint.price?.usd },
        protocols: [
          {
            x402: {
              protocol: 'x402',
              version: 2,
              scheme: 'exact',
              network: 'eip155:5042',
              asset: ENV.USDC_ADDRESS,
              amount,
              payTo: ENV.SELLER_ADDRESS,
              maxTimeoutSeconds: 604900,
            },
          },
        ],
      });
      expect(operation.tags).toEqual(['paid']);
      expect(operation.responses['402']?.headers).toHaveProperty('PAYMENT-REQUIRED');
      expect(operation.parameters?.map(({ name }) => name)).toContain('PAYMENT-SIGNATURE');
    },
  );

  it.each(sold.map((endpoint) => [pathOn(endpoint, 'lightning'), endpoint] as const))(
    'states for %s its price in dollars, and that the 402 quotes the sats',
    (path, endpoint) => {
      const operation = operationOf(path);
      expect(operation['x-payment-info']).toMatchObject({
        price: { mode: 'fixed', currency: 'USD', amount: endpoint.price?.usd },
        protocols: [
          { x402: { scheme: 'exact', asset: 'BTC' } },
          { l402: { currency: 'sat' } },
          { mpp: { method: 'lightning', intent: 'charge', currency: 'sat' } },
        ],
        offers: [{ intent: 'charge', method: 'lightning', amount: null, currency: 'sat' }],
      });
      expect(operation.responses['402']?.headers).toHaveProperty('WWW-Authenticate');
      expect(operation.tags).toEqual(['lightning']);
      expect(operation.responses['402']?.content?.['application/json']?.schema).toEqual(
        document.components.schemas.LightningChallenge,
      );
      expect(operation.parameters?.map(({ name }) => name)).toContain('PAYMENT-SIGNATURE');
    },
  );

  it('has no payment terms for free operations', () => {
    for (const endpoint of catalogue.filter(({ price }) => price === null)) {
      const operation = operationOf(listedPath(endpoint));
      expect(operation['x-payment-info']).toBeUndefined();
      expect(operation.responses['402']).toBeUndefined();
    }
  });

  it.each(catalogue.map((endpoint) => [listedPath(endpoint), endpoint] as const))(
    'describes parameters and answers of %s',
    (path, endpoint) => {
      const operation = operationOf(path);
      const query = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query');
      expect(query.map(({ name }) => name)).toEqual(Object.keys(endpoint.params.shape));
      for (const { name, required, description, schema } of query) {
        expect(required).toBe(!endpoint.params.shape[name]?.safeParse(undefined).success);
        expect(description).toMatch(/\w/);
        expect(schema.type).toBeDefined();
      }
      for (const status of ['200', '400', '404', '405', '414', '429', '431', '500', '502', '503'])
        expect(operation.responses[status]?.description).toMatch(/\w/);
      const answer = operation.responses['200']?.content?.['application/json'];
      expect(answer?.schema.examples).toEqual([endpoint.example.result]);
      expect(answer?.schema.properties).toBeDefined();
      expect(operation.responses['400']?.content?.['application/problem+json']?.schema).toEqual(
        document.components.schemas.Problem,
      );
    },
  );

  it('keeps bounds and default of a whole number', () => {
    const gas = operationOf('/v1/fees/estimate').parameters?.[0];
    expect(gas).toMatchObject({
      name: 'gas',
      required: false,
      example: 51000,
      schema: { type: 'integer', minimum: 1, maximum: 30_000_000, default: 21_000 },
    });
    expect(gas?.schema.pattern).toBeUndefined();
  });

  it('gives every optional parameter a default that its route accepts, and takes no parameter for a list', () => {
    for (const endpoint of catalogue) {
      const { parameters = [] } = operationOf(listedPath(endpoint));
      for (const { name, schema } of parameters.filter((parameter) => parameter.in === 'query')) {
        // A repeated parameter is refused, so a client must not send a list as repeated keys.
        expect([name, schema.type]).not.toEqual([name, 'array']);
        if (schema.default === undefined) continue;
        const param = endpoint.params.shape[name]!;
        expect([typeof schema.default, name]).toEqual([schema.type === 'integer' ? 'number' : 'string', name]);
        const absent = z.safeParse(param, undefined);
        expect([name, z.safeParse(param, String(schema.default)).data]).toEqual([name, absent.data]);
      }
    }
  });

  it('describes each answer once, however many protocols sell it, so that it stays under 340 KB', () => {
    const refsTo = (name: string) => JSON.stringify(byMpp).split(`"#/components/schemas/${name}"`).length - 1;
    expect([refsTo('PaidWikiSearch'), refsTo('Source') >= catalogue.length - 1]).toEqual([3, true]);
    expect(Buffer.byteLength(JSON.stringify(document))).toBeLessThan(340_000);
  });

  it('says of every object what its members are, or that it has any, because generated clients take a bare one for empty', () => {
    const bare = (value: unknown, at: string): string[] => {
      if (typeof value !== 'object' || value === null) return [];
      const { type, properties, additionalProperties, anyOf } = value as Record<string, unknown>;
      const isBare = type === 'object' && !properties && additionalProperties === undefined && !anyOf;
      const within = Object.entries(value).filter(([key]) => key !== 'examples' && key !== 'example');
      return [...(isBare ? [at] : []), ...within.flatMap(([key, one]) => bare(one, `${at}/${key}`))];
    };
    expect(bare({ paths: byMpp.paths, components: byMpp.components }, '#')).toEqual([]);
    expect(bare({ x: { type: 'object' } }, '#')).toEqual(['#/x']);
  });

  it('contains every component that it refers to', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1]);
    expect(references.length).toBeGreaterThan(10);
    for (const reference of new Set(references)) {
      expect([reference, resolved({ $ref: reference }, document)]).toEqual([reference, expect.any(Object)]);
    }
  });

  it('shows a stock client how to pay, with this network and this asset', () => {
    expect(document.info.description).toContain(
      `network: "eip155:5042", asset: "${ENV.USDC_ADDRESS}", maxAmountPerPayment: "${dearest().units}"`,
    );
  });
});

describe('the document of the priced routes alone', () => {
  const slim = pricedOnly(document as never) as unknown as Document;
  const priced = [...paid.map((one) => pathOn(one, 'paid')), ...sold.map((one) => pathOn(one, 'lightning'))];

  it('has every priced operation with its parameters, its ways to pay and a 402, and no free one', () => {
    expect(Object.keys(slim.paths).sort()).toEqual(priced.sort());
    for (const path of priced) {
      const [whole, short] = [operationOf(path), slim.paths[path]?.get as Operation];
      for (const key of ['operationId', 'description', 'tags', 'security', 'x-payment-info'] as const) {
        expect(short[key], `${path} ${key}`).toEqual(whole[key]);
      }
      const named = (operation: Operation) =>
        (operation.parameters ?? [])
          .filter(({ in: place }) => place === 'query')
          .map(({ name, required }) => ({ name, required }));
      expect(named(short), path).toEqual(named(whole));
      expect(Object.keys(short.responses), path).toEqual(['200', '402']);
    }
    expect(slim.components.securitySchemes).toEqual(document.components.securitySchemes);
  });

  it('stays under 64 KiB, also with every way to pay in USDC and a long address', async () => {
    const acceptsOf = (endpoint: Endpoint<never>) => Array.from({ length: 3 }, () => requirementOf(endpoint));
    const publicOrigin = `https://${'a'.repeat(63)}.${'b'.repeat(63)}.example`;
    const whole = await createOpenApi({ ...options, acceptsOf, publicOrigin, mpp: true });
    const { paths } = pricedOnly(whole) as unknown as Document;
    expect(Object.keys(paths)).toHaveLength(priced.length + paid.length);
    // Then it is too long with the routes' descriptions.
    expect(Object.values(paths).filter(({ get }) => get?.description !== undefined)).toEqual([]);
    expect(Buffer.byteLength(JSON.stringify(pricedOnly(whole)))).toBeLessThan(65_536);
  });

  it('is empty of routes where nothing is sold', async () => {
    const whole = await createOpenApi({ ...options, catalogue: [] });
    expect(pricedOnly(whole).paths).toEqual({});
  });
});

describe('a directory of MPP services', () => {
  const offersOf = (path: string, described: Document = document) => {
    const read = DiscoveryDocument.parse(described).paths?.[path]?.get?.['x-payment-info'];
    return read?.offers;
  };

  it.each([
    ['whole', document],
    ['slim', pricedOnly(document as never)],
    ['whole (MPP=on)', byMpp],
    ['slim (MPP=on)', pricedOnly(byMpp as never)],
  ])('finds no fault in the %s document', (_name, read) => {
    expect(validate(read)).toEqual([]);
  });

  it('reads the offer of every route whose 402 has a Payment challenge, and what the service is', () => {
    for (const endpoint of sold) {
      expect(offersOf(pathOn(endpoint, 'lightning'))).toMatchObject([
        { intent: 'charge', method: 'lightning', amount: null, currency: 'sat' },
      ]);
    }
    expect(DiscoveryDocument.parse(document)['x-service-info']).toEqual({
      categories: ['data', 'developer-tools', 'search'],
      docs: {
        homepage: 'https://here.example/',
        apiReference: 'https://here.example/docs',
        llms: 'https://here.example/llms.txt',
      },
    });
  });

  it('reads the offer of every route under /v1/mpp, in base units of the asset, where MPP is on', () => {
    expect(Object.keys(document.paths).filter((path) => path.startsWith('/v1/mpp'))).toEqual([]);
    expect(document.tags.map(({ name }) => name)).not.toContain('mpp');
    expect(byMpp.tags.map(({ name }) => name)).toContain('mpp');
    for (const endpoint of paid) {
      const path = pathOn(endpoint, 'mpp');
      const offer = {
        intent: 'charge',
        method: 'evm',
        amount: String(endpoint.price?.units),
        currency: ENV.USDC_ADDRESS,
      };
      expect(offersOf(path, byMpp), path).toEqual([offer]);
      const { responses, security } = operationIn(byMpp, path);
      expect(security, path).toEqual([{ Payment: [] }]);
      expect(Object.keys(responses['402']?.headers ?? {}), path).toEqual(['WWW-Authenticate', 'Link', 'X-Request-Id']);
      expect(responses['200']?.headers, path).toHaveProperty('Payment-Receipt');
    }
    expect(createLlmsText(options)).not.toContain('/v1/mpp');
    expect(createLlmsText({ ...options, mpp: true })).toContain('`/v1/mpp` in place of `/v1/paid`');
  });

  it('would find an operation that mixes both forms of an offer, and one without a 402', () => {
    const info = { offers: [{ intent: 'charge', method: 'lightning', amount: null }], amount: '1' };
    const operation = { responses: { 200: {} }, 'x-payment-info': info };
    const bad = { openapi: '3.1.0', info: { title: 'x', version: '1' }, paths: { '/x': { get: operation } } };
    expect(validate(bad).map(({ message }) => message)).toEqual(['Cannot mix offers with flat payment info fields']);
    const { amount: _amount, ...rest } = info;
    const bare = { ...bad, paths: { '/x': { get: { ...operation, 'x-payment-info': rest } } } };
    expect(validate(bare).map(({ message }) => message)).toEqual([
      'Operation with x-payment-info MUST have a 402 response',
    ]);
  });
});

describe('the committed document', () => {
  const committed = readFileSync(new URL('openapi/openapi.json', ROOT), 'utf8');

  it('differs from a served one only in the seller, the network and the server', () => {
    const strip = (text: string) =>
      text
        .replaceAll(/0x[0-9a-f]{40}/gi, 'ADDRESS')
        .replaceAll('https://here.example', 'SERVER')
        .replaceAll('https://api.example.com', 'SERVER');
    expect(strip(JSON.stringify(JSON.parse(committed)))).toBe(strip(JSON.stringify(document)));
  });

  it('is what the generator makes', () => {
    execFileSync(process.execPath, ['scripts/generate-openapi.ts', '--check'], { cwd: fileURLToPath(ROOT) });
  });
});
