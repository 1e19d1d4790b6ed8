import { describe, expect, test } from 'vitest';
import type { Challenge } from '../../../src/discovery/challenge.ts';
import {
  describeChallenge,
  describeOpenApi,
  describeWellKnown,
  isComplete,
  joinDescriptions,
  NO_DESCRIPTION,
} from '../../../src/discovery/description.ts';
import { acceptV1 } from '../../support/market/market.ts';

const URL_HERE = new URL('https://a.example/v1/weather/%7Bcity%7D');
const param = (name: string, place: string, more: object = {}) => ({
  name,
  in: place,
  type: 'string',
  description: '',
  required: false,
  example: null,
  ...more,
});
const v2 = (whole: object): Challenge => ({ version: 2, accepts: [], whole });

/** The extension in the form of the x402 foundation's library (2.27.0, `declareDiscoveryExtension`): examples in `info`, their schema in `schema`. */
function bazaar(info: object, input: object): object {
  const schema = { $schema: 'https://json-schema.org/draft/2020-12/schema', type: 'object', required: ['input'] };
  return { bazaar: { info, schema: { ...schema, properties: { input: { type: 'object', properties: input } } } } };
}

describe('a 402 of version 2', () => {
  test('is described by its resource and by the bazaar extension', () => {
    const queryParams = {
      type: 'object',
      properties: { units: { type: 'string', description: 'metric or imperial' }, days: { type: 'integer' } },
      required: ['units'],
    };
    const input = { type: 'http', method: 'GET', queryParams: { units: 'metric' } };
    const output = { type: 'json', example: { windSpeed: 3, forecast: [{ high: 20 }] } };
    const extensions = bazaar({ input, output }, { type: { const: 'http' }, queryParams });
    const resource = {
      url: URL_HERE.href,
      description: 'Weather of a city',
      serviceName: 'Skies',
      tags: ['Weather', 'geo'],
    };
    expect(describeChallenge(v2({ resource, extensions }), URL_HERE, 'GET')).toEqual({
      name: '',
      label: 'Skies',
      description: 'Weather of a city',
      category: 'Weather',
      params: [
        param('units', 'query', { description: 'metric or imperial', required: true, example: 'metric' }),
        param('days', 'query', { type: 'integer' }),
        param('city', 'path', { required: true }),
      ],
      body: null,
      keywords: 'Weather geo wind speed forecast high',
      method: 'GET',
    });
  });

  test('describes the body of a POST with an example', () => {
    const body = {
      type: 'object',
      properties: { text: { type: 'string' }, tags: { type: 'array' } },
      required: ['text'],
    };
    const input = { type: 'http', method: 'POST', bodyType: 'json', body: { text: 'hello', tags: ['a'] } };
    const extensions = bazaar({ input }, { type: { const: 'http' }, body });
    const found = describeChallenge(v2({ extensions }), new URL('https://a.example/sum'), 'GET');
    expect(found.method).toBe('POST');
    expect(found.params).toEqual([
      param('text', 'body', { required: true, example: 'hello' }),
      param('tags', 'body', { type: 'array', example: ['a'] }),
    ]);
    expect(found.body).toEqual({ text: 'hello', tags: ['a'] });
  });

  test.each([
    null,
    [],
    'x',
    {},
    { resource: 1, extensions: { bazaar: [] } },
    { extensions: { bazaar: { info: { input: 7 } } } },
  ])('without any text gives no description: %j', (whole) => {
    const here = new URL('https://a.example/x');
    expect(describeChallenge({ version: 2, accepts: [], whole }, here, 'GET')).toEqual(NO_DESCRIPTION);
  });
});

test('a 402 of version 1 is described by its entries', () => {
  const outputSchema = {
    input: { type: 'http', method: 'post', bodyFields: { q: { type: 'string', required: true, description: 'What' } } },
    output: { answer: { type: 'string' } },
  };
  const accepts = [acceptV1(), acceptV1({ description: 'Answers', outputSchema })];
  const challenge: Challenge = { version: 1, accepts, whole: { x402Version: 1, accepts } };
  expect(describeChallenge(challenge, new URL('https://a.example/ask'), 'GET')).toMatchObject({
    description: 'Answers',
    params: [param('q', 'body', { description: 'What', required: true })],
    method: 'POST',
  });
});

const OPENAPI = {
  info: { title: 'Sky service' },
  servers: [{ url: 'https://elsewhere.example/v1' }],
  paths: {
    '/weather/{city}': {
      parameters: [{ name: 'city', in: 'path', required: true, schema: { type: 'string', example: 'Oslo' } }],
      get: {
        summary: 'City weather',
        tags: ['weather'],
        parameters: [{ $ref: '#/components/parameters/units' }, { name: 'X-PAYMENT', in: 'header' }],
        responses: {
          200: { content: { 'application/json': { schema: { properties: { windSpeed: { type: 'number' } } } } } },
        },
      },
      post: {
        operationId: 'sendWeather',
        requestBody: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Sent' } } } },
      },
    },
    '/loop': {
      get: { parameters: [{ $ref: '#/components/parameters/loop' }], requestBody: { $ref: 'https://a.example/x' } },
    },
  },
  components: {
    parameters: {
      units: {
        name: 'units',
        in: 'query',
        description: 'Of measurement',
        schema: { enum: ['metric'], type: 'string' },
      },
      loop: { $ref: '#/components/parameters/loop' },
    },
    schemas: { Sent: { required: ['note'], properties: { note: { type: 'string', example: 'warm' } } } },
  },
};

describe('an OpenAPI document', () => {
  test('describes the operation of the method that answered, behind a server’s path, with references resolved', () => {
    expect(describeOpenApi(OPENAPI, URL_HERE, 'GET')).toEqual({
      name: 'City weather',
      label: 'Sky service',
      description: 'City weather',
      category: 'weather',
      params: [
        param('city', 'path', { required: true, example: 'Oslo' }),
        param('units', 'query', { description: 'Of measurement' }),
      ],
      body: null,
      keywords: 'weather wind speed',
      method: 'GET',
    });
  });

  test('finds an operation whose path refers to an item among the components', () => {
    const { paths, components } = OPENAPI as unknown as { paths: Record<string, object>; components: object };
    const items = Object.entries(paths);
    const referred = items.map(([path], index) => [path, { $ref: `#/components/pathItems/${index}` }]);
    const pathItems = Object.fromEntries(items.map(([, item], index) => [index, item]));
    const document = { ...OPENAPI, paths: Object.fromEntries(referred), components: { ...components, pathItems } };
    expect(describeOpenApi(document, URL_HERE, 'GET')).toEqual(describeOpenApi(OPENAPI, URL_HERE, 'GET'));
  });

  test('matches a template to a concrete path, and describes a body', () => {
    expect(describeOpenApi(OPENAPI, new URL('https://a.example/v1/weather/Rome/'), 'POST')).toMatchObject({
      name: 'sendWeather',
      params: [{ name: 'city', in: 'path' }, param('note', 'body', { required: true, example: 'warm' })],
      body: { note: 'warm' },
      method: 'POST',
    });
  });

  test('without the route, or of another kind, gives no description; circular and external references end', () => {
    const other = new URL('https://a.example/v1/tides');
    expect(describeOpenApi(OPENAPI, other, 'GET')).toEqual(NO_DESCRIPTION);
    for (const none of [null, 'x', [], { paths: [] }, { paths: { '/v1/tides': null } }]) {
      expect(describeOpenApi(none, other, 'GET')).toEqual(NO_DESCRIPTION);
    }
    expect(describeOpenApi(OPENAPI, new URL('https://a.example/loop'), 'GET').params).toEqual([]);
  });
});

describe('a well-known document', () => {
  const item = {
    resource: 'https://a.example/v1/weather/{name}',
    method: 'GET',
    name: 'Weather',
    description: 'Of a city',
    tags: ['sky'],
    params: [{ name: 'days', in: 'query', type: 'integer', required: true, description: 'How many', example: 3 }],
  };

  test.each(['items', 'resources', 'endpoints', 'routes'])('describes the item of this URL in `%s`', (list) => {
    const document = { name: 'Skies', [list]: ['https://a.example/other', { resource: 'https://a.example/no' }, item] };
    expect(describeWellKnown(document, URL_HERE, 'GET')).toMatchObject({
      name: 'Weather',
      label: 'Skies',
      description: 'Of a city',
      category: 'sky',
      params: [
        param('days', 'query', { type: 'integer', required: true, description: 'How many', example: 3 }),
        { name: 'city', in: 'path' },
      ],
      method: 'GET',
    });
  });

  test('takes a bare path as one of its own origin only', () => {
    const here = new URL('https://a.example/x');
    expect(describeWellKnown({ items: [{ path: '/x', name: 'X' }] }, here, 'GET').name).toBe('X');
    expect(describeWellKnown({ items: [{ url: 'https://b.example/x', name: 'X' }] }, here, 'GET')).toEqual(
      NO_DESCRIPTION,
    );
  });

  test.each([null, [], 7, { items: {} }, { items: [null, 'x', { resource: 'ht tp://' }] }])(
    'gives no description: %j',
    (document) => {
      expect(describeWellKnown(document, URL_HERE, 'GET')).toEqual(NO_DESCRIPTION);
    },
  );
});

describe('a hostile description', () => {
  const LOUD = `<script>alert(1)</script>\u202e\u0000\u001b[31m<img src=x onerror=y>${'word '.repeat(2000)}`;
  const deep = (depth: number): unknown => JSON.parse(`${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`);
  const many = Object.fromEntries(
    Array.from({ length: 5000 }, (_, n) => [`p${n}`, { type: 'string', description: LOUD }]),
  );
  const hostile = {
    resource: { description: LOUD, serviceName: LOUD, tags: [LOUD, { toString: 1 }] },
    extensions: {
      bazaar: {
        info: {
          category: LOUD,
          input: { method: LOUD, queryParams: { ...many, [LOUD]: LOUD, x: deep(5000) }, body: { y: LOUD } },
          output: { example: deep(5000) },
        },
        schema: {
          properties: {
            input: { properties: { queryParams: { properties: JSON.parse(`{"__proto__":{"type":"string"}}`) } } },
          },
        },
      },
    },
  };

  test('becomes plain and short', () => {
    const found = describeChallenge(v2(hostile), URL_HERE, 'GET');
    const text = JSON.stringify(found);
    expect(text).not.toMatch(/[<>\p{Cc}\u202e]|__proto__/u);
    expect(text.length).toBeLessThan(20_000);
    expect(found.params.length).toBeLessThanOrEqual(20);
    expect(found.description.length).toBeLessThanOrEqual(500);
    expect(found.label.length).toBeLessThanOrEqual(60);
    expect(found.category.length).toBeLessThanOrEqual(40);
    expect(found.keywords.length).toBeLessThanOrEqual(400);
  });

  test('becomes plain and short in the other documents too', () => {
    const openApi = {
      info: { title: LOUD },
      paths: {
        '/v1/weather/{city}': {
          get: {
            summary: LOUD,
            description: LOUD,
            tags: [LOUD],
            parameters: [
              { name: LOUD, in: 'query' },
              { name: 'ok', in: 'query', schema: deep(3000) },
            ],
          },
        },
      },
    };
    const wellKnown = {
      items: [{ resource: URL_HERE.href.replace('%7Bcity%7D', '{city}'), name: LOUD, description: LOUD, params: many }],
    };
    for (const found of [describeOpenApi(openApi, URL_HERE, 'GET'), describeWellKnown(wellKnown, URL_HERE, 'GET')]) {
      const text = JSON.stringify(found);
      expect(found.name).toMatch(/word/);
      expect(text).not.toMatch(/[<>\p{Cc}\u202e]/u);
      expect(text.length).toBeLessThan(20_000);
    }
  });
});

test('several documents are joined: each member comes from the first document that has it', () => {
  const first = { ...NO_DESCRIPTION, description: 'one', label: 'L' };
  const second = { ...NO_DESCRIPTION, name: 'two', description: 'two', params: [], method: 'POST' as const };
  expect(joinDescriptions(first, second)).toMatchObject({
    name: 'two',
    description: 'one',
    label: 'L',
    method: 'POST',
  });
  expect(isComplete(joinDescriptions(first, second))).toBe(false);
});
