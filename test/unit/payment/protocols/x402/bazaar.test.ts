import { describe, expect, test } from 'vitest';
import { z } from 'zod';
import { catalogue } from '../../../../../src/catalogue/catalogue.ts';
import { entriesOn, listedPath, pathOn } from '../../../../../src/catalogue/paths.ts';
import { describeChallenge } from '../../../../../src/discovery/describe-challenge.ts';
import { plainText } from '../../../../../src/discovery/plain-text.ts';
import { describeParams } from '../../../../../src/http/openapi/param-docs.ts';
import { createOffer } from '../../../../../src/payment/open-offers.ts';
import { bazaarExtension } from '../../../../../src/payment/protocols/x402/bazaar.ts';
import { quotedChallenge } from '../../../../../src/payment/protocols/x402/quoted-challenge.ts';
import { challengeOf } from '../../../../support/service/challenge-of.ts';
import { TERMS } from '../../../../support/service/terms.ts';

/** Characters of a description that the market takes from a third party. */
const MARKET_KEEPS = 200;
const paid = entriesOn(catalogue, 'paid');
const sold = entriesOn(catalogue, 'lightning');
const decode = (header: string) => JSON.parse(Buffer.from(header, 'base64').toString('utf8'));
const bytesOf = (value: unknown) => Buffer.byteLength(JSON.stringify(value));

describe('the header of a 402', () => {
  test('stays within 6 KiB on every USDC route with both ways to pay, and within 8 KiB for the longest URL that it names', () => {
    const sizes = paid.map((endpoint) => {
      const challenge = challengeOf(createOffer(endpoint, TERMS));
      const path = pathOn(endpoint, 'paid');
      const long = challenge(`${path}?q=${'x'.repeat(1021 - path.length)}`);
      expect(decode(long).resource.url).toHaveLength(TERMS.publicOrigin.length + 1024);
      return [challenge(path).length, long.length] as const;
    });
    expect(sizes).toHaveLength(21);
    expect(Math.max(...sizes.map(([plain]) => plain))).toBeLessThanOrEqual(6 * 1024);
    expect(Math.max(...sizes.map(([, long]) => long))).toBeLessThanOrEqual(8 * 1024);
  });

  test('stays within 5 KiB on every Lightning route, and its body says the same', () => {
    const requirement = {
      ...{
        scheme: 'exact',
        network: `lnbtc:${'0'.repeat(32)}`,
        asset: 'BTC',
        amount: '125000',
        payTo: '02'.repeat(33),
      },
      maxTimeoutSeconds: 300,
      extra: { invoice: 'l'.repeat(400), requestHash: 'f'.repeat(64), requestBindingParams: { headers: [] } },
    } as never;
    for (const endpoint of sold) {
      const order = { endpoint, url: `${TERMS.publicOrigin}${pathOn(endpoint, 'lightning')}` } as never;
      const offered = { requirement, priceUsd: '0.005', btcUsd: '64000.12', invoice: {} as never };
      const { header, body } = quotedChallenge(order, offered);
      expect(header.length).toBeLessThanOrEqual(5 * 1024);
      expect(decode(header).extensions).toEqual(JSON.parse(JSON.stringify(bazaarExtension(endpoint, 1500))));
      expect(decode(header).resource.mimeType).toBe('application/json');
      expect(JSON.parse(body)).toMatchObject(decode(header));
    }
    expect(sold).toHaveLength(22);
  });

  test('is plain base64 of one JSON object, whatever the length of URL and reason', () => {
    const challenge = challengeOf(createOffer(paid[0]!, TERMS));
    const path = pathOn(paid[0]!, 'paid');
    for (let length = 0; length < 9; length += 1) {
      for (const error of [undefined, 'payment_already_used', 'naïve’']) {
        const target = `${path}?q=${'x'.repeat(length)}`;
        const header = challenge(target, error);
        expect(header).toMatch(/^[A-Za-z0-9+/]+={0,2}$/);
        const { x402Version, error: said, resource, accepts } = decode(header);
        expect([x402Version, said]).toEqual([2, error ?? 'Payment required']);
        expect(resource).toMatchObject({ url: TERMS.publicOrigin + target, description: paid[0]!.summary });
        expect(accepts).toHaveLength(2);
      }
    }
  });
});

describe('the extension of a route', () => {
  test.each([...new Set([...paid, ...sold])].map((endpoint) => [listedPath(endpoint), endpoint] as const))(
    '%s has its whole example, names every field of its answer, and describes its parameters as our own market reads them',
    (path, endpoint) => {
      // A copy: of the catalogue's own entry the extension may have been made before.
      const { bazaar } = bazaarExtension({ ...endpoint });
      const { info, schema } = bazaar as { info: Record<string, unknown>; schema: { properties: { output: object } } };
      expect(info).toMatchObject({ output: { type: 'json', example: endpoint.example.result } });
      const fields = Object.keys(endpoint.result.shape).sort();
      expect(
        Object.keys((schema.properties.output as never as Output).properties.example.properties ?? {}).sort(),
      ).toEqual(fields);
      const whole = decode(challengeOf(createOffer(endpoint, TERMS))(path));
      const { params, method, description } = describeChallenge(
        { version: 2, accepts: [], whole },
        new URL(path, TERMS.publicOrigin),
        'GET',
      );
      expect([method, description]).toEqual(['GET', endpoint.summary]);
      expect(params.map(({ name, required, description, type }) => ({ name, required, description, type }))).toEqual(
        describeParams(endpoint).map(({ name, required, description, schema: { type } }) => ({
          ...{ name, required, description: plainText(description, MARKET_KEEPS), type },
        })),
      );
    },
  );

  test('is made once', () => {
    const endpoint = endpointOf(1, 1, 1) as never;
    expect(bazaarExtension(endpoint)).toBe(bazaarExtension(endpoint));
  });
});

test('the extension has the official form: how the route is called, its examples, and the schema of both', () => {
  const pair = z.object({ a: z.string() });
  const endpoint = {
    params: z.object({
      q: z.string().meta({ description: 'What to look for.' }),
      zip: z.string().optional(),
      limit: z.coerce.number().int().min(1).max(10).default(5),
      page: z.int().min(1).max(99).optional(),
    }),
    result: z.object({
      ...{ text: z.string(), fixed: z.literal('v1'), way: z.enum(['up', 'down']).nullable() },
      ...{ either: z.union([z.string(), z.int()]), orNull: z.union([z.string(), z.int(), z.null()]) },
      ...{ mark: z.literal('x').nullable() },
      nested: z.union([z.union([z.string(), z.int()]), z.null()]),
      objects: z.union([pair, z.array(pair)]),
      list: z.array(z.string()),
    }),
    example: { params: { q: '0042', limit: '3' }, result: { text: 't' } },
  };
  const [text, integer, none] = [{ type: 'string' }, { type: 'integer' }, { type: 'null' }];
  const described = { type: 'object', properties: { a: text } };
  // As it is sent: a member that is undefined is not.
  expect(JSON.parse(JSON.stringify(bazaarExtension(endpoint as never).bazaar))).toEqual({
    info: {
      input: { type: 'http', method: 'GET', queryParams: { q: '0042', limit: 3 } },
      output: { type: 'json', example: { text: 't' } },
    },
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        input: {
          type: 'object',
          properties: {
            type: { type: 'string', const: 'http' },
            method: { type: 'string', enum: ['GET'] },
            queryParams: {
              type: 'object',
              properties: {
                q: { ...text, description: 'What to look for.' },
                zip: text,
                limit: { ...integer, minimum: 1, maximum: 10 },
                page: { ...integer, minimum: 1, maximum: 99 },
              },
              required: ['q'],
              additionalProperties: false,
            },
          },
          required: ['type', 'method'],
          additionalProperties: false,
        },
        output: {
          type: 'object',
          properties: {
            type: text,
            example: {
              type: 'object',
              properties: {
                text,
                fixed: { ...text, const: 'v1' },
                way: { type: ['string', 'null'], enum: ['up', 'down', null] },
                either: { anyOf: [text, integer] },
                orNull: { anyOf: [text, integer, none] },
                mark: { anyOf: [{ ...text, const: 'x' }, none] },
                nested: { anyOf: [{ anyOf: [text, integer] }, none] },
                objects: { anyOf: [described, { type: 'array', items: described }] },
                list: { type: 'array', items: text },
              },
            },
          },
          required: ['type'],
        },
      },
      required: ['input'],
    },
  });
});

interface Output {
  properties: { example: { properties?: Record<string, { properties?: object }> } };
}

/** An endpoint whose parameter is described in so many characters, with an answer of so many nested fields and an example of so many characters. */
function endpointOf(words: number, fields: number, example: number) {
  const inner = z.object(Object.fromEntries(Array.from({ length: fields }, (_, n) => [`field${n}`, z.string()])));
  return {
    params: z.object({ q: z.string().meta({ description: 'w'.repeat(words) }) }),
    result: z.object({ text: z.string(), inner: inner.nullable() }),
    example: { params: { q: 'tea' }, result: { text: 'x'.repeat(example), inner: null } },
  };
}

/** The parts that an extension still has. */
function toldBy(endpoint: ReturnType<typeof endpointOf>) {
  const { bazaar } = bazaarExtension(endpoint as never);
  const { info, schema } = bazaar as {
    info: { output: { example?: unknown } };
    schema: { properties: { input: object; output: Output } };
  };
  const { properties } = schema.properties.output.properties.example;
  return {
    words: /"description"/.test(JSON.stringify(schema)),
    fields: properties === undefined ? 0 : properties.inner?.properties === undefined ? 1 : 2,
    example: info.output.example !== undefined,
    bytes: bytesOf({ bazaar }),
    input: JSON.stringify(schema.properties.input).includes('"q":{"type":"string"'),
  };
}

test('the answer’s schema says of nested values what the example does not show, and nothing else', () => {
  const pair = z.object({ at: z.int(), rate: z.string().nullable() });
  const result = z.object({
    shown: pair,
    withNull: pair,
    absent: pair.optional(),
    unknown: pair.nullable(),
    list: z.array(pair),
    empty: z.array(pair),
    choice: z.object({ way: z.enum(['up', 'down']) }),
    deep: z.object({ inner: pair, more: pair.nullable() }),
  });
  const whole = { at: 1, rate: '2' };
  const example = {
    ...{ shown: whole, withNull: { at: 1, rate: null }, unknown: null, list: [whole], empty: [] },
    ...{ choice: { way: 'up' }, deep: { inner: whole, more: null } },
  };
  const endpoint = { params: z.object({}), result, example: { params: {}, result: example } };
  const { schema } = bazaarExtension(endpoint as never).bazaar as { schema: { properties: { output: Output } } };
  const described = { properties: { at: { type: 'integer' }, rate: { type: ['string', 'null'] } } };
  expect(schema.properties.output.properties.example.properties).toEqual({
    shown: { type: 'object' },
    withNull: { type: 'object', ...described },
    absent: { type: 'object', ...described },
    unknown: { type: ['object', 'null'], ...described },
    list: { type: 'array' },
    empty: { type: 'array', items: { type: 'object', ...described } },
    choice: { type: 'object', properties: { way: { type: 'string', enum: ['up', 'down'] } } },
    deep: {
      type: 'object',
      properties: { inner: { type: 'object' }, more: { type: ['object', 'null'], ...described } },
    },
  });
});

describe('an extension that would be too large', () => {
  test.each([
    ['nothing, while all of it fits', endpointOf(100, 5, 100), { words: true, fields: 2, example: true }],
    ['words first', endpointOf(3000, 5, 100), { words: false, fields: 2, example: true }],
    ['then nested fields of the answer', endpointOf(10, 100, 100), { words: false, fields: 1, example: true }],
    ['then the fields', endpointOf(10, 100, 2650), { words: false, fields: 0, example: true }],
    ['the example at last', endpointOf(3000, 100, 9000), { words: false, fields: 0, example: false }],
  ])('leaves out %s', (_what, endpoint, described) => {
    const { bytes, ...left } = toldBy(endpoint);
    expect(left).toEqual({ ...described, input: true });
    expect(bytes).toBeLessThanOrEqual(3400);
  });

  test('leaves nothing out at 3,400 bytes, and words at one byte more', () => {
    const spare = 3400 - toldBy(endpointOf(100, 5, 100)).bytes;
    expect(toldBy(endpointOf(100 + spare, 5, 100))).toMatchObject({ words: true, bytes: 3400 });
    expect(toldBy(endpointOf(101 + spare, 5, 100))).toMatchObject({ words: false, fields: 2, example: true });
  });

  test('is as small as a valid one can be when its parameters alone do not fit', () => {
    const names = Array.from({ length: 200 }, (_, n) => [`parameter${n}`, z.string()]);
    const { result, example } = endpointOf(0, 100, 9000);
    const endpoint = { result, example, params: z.object(Object.fromEntries(names)) };
    expect(toldBy(endpoint as never)).toMatchObject({ words: false, fields: 0, example: false });
  });
});
