import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { describe, expect, it } from 'vitest';
import { catalogue } from '../../../../src/catalogue/catalogue.ts';
import type { Endpoint } from '../../../../src/catalogue/endpoint.ts';
import { entriesOn, listedPath, pathOn } from '../../../../src/catalogue/paths.ts';
import { loadConfig } from '../../../../src/config.ts';
import { createLlmsText } from '../../../../src/http/llms-text.ts';
import { createOpenApi } from '../../../../src/http/openapi/openapi.ts';
import { offersUnder } from '../../../../src/payment/open-offers.ts';
import { ENV } from '../../../http/harness.ts';

interface Operation {
  operationId: string;
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
  paths: Record<string, Record<string, Operation>>;
  components: { schemas: Record<string, unknown> };
}

const ROOT = new URL('../../../../', import.meta.url);
const config = loadConfig(ENV);
const offerOf = offersUnder(config);
const requirementOf = (endpoint: Endpoint<never>) => offerOf(endpoint).requirement;
const options = {
  catalogue,
  requirementOf,
  chain: { name: 'Arc', isPlayMoney: false },
  publicOrigin: 'https://here.example',
};
const document = (await createOpenApi(options)) as unknown as Document;
const operationOf = (path: string) => document.paths[path]?.get as Operation;
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

  it('states for every operation that it needs no account and no key', () => {
    const operations = Object.values(document.paths).flatMap((item) => Object.values(item));
    expect(operations.length).toBeGreaterThan(catalogue.length);
    for (const { operationId, security } of operations) expect([operationId, security]).toEqual([operationId, []]);
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
    expect(paths).toEqual(expect.arrayContaining(sold.map((endpoint) => pathOn(endpoint, 'lightning'))));
    expect(paths.filter((path) => path.startsWith('/v1/lightning/'))).toHaveLength(22);
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
        protocols: [{ x402: { scheme: 'exact', asset: 'BTC' } }],
      });
      expect(operation.tags).toEqual(['lightning']);
      expect(operation.responses['402']?.content?.['application/json']?.schema).toEqual({
        $ref: '#/components/schemas/LightningChallenge',
      });
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
      for (const status of ['200', '400', '404', '429', '500', '502', '503'])
        expect(operation.responses[status]?.description).toMatch(/\w/);
      const answer = operation.responses['200']?.content?.['application/json'];
      expect(answer?.example).toEqual(endpoint.example.result);
      expect(answer?.schema.properties).toBeDefined();
      expect(operation.responses['400']?.content?.['application/problem+json']?.schema).toEqual({
        $ref: '#/components/schemas/Problem',
      });
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

  it('contains every schema that it refers to', () => {
    const references = [...JSON.stringify(document).matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1]);
    expect(references.length).toBeGreaterThan(10);
    for (const reference of new Set(references)) {
      expect(Object.keys(document.components.schemas)).toContain(reference?.replace('#/components/schemas/', ''));
    }
  });

  it('shows a stock client how to pay, with this network and this asset', () => {
    expect(document.info.description).toContain(
      `network: "eip155:5042", asset: "${ENV.USDC_ADDRESS}", maxAmountPerPayment: "5000"`,
    );
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
