import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { z } from 'zod';
import { pricedOnly } from '../../../../src/http/openapi/text.ts';

// The rules of `spectral:oas`, the set by which directories judge OpenAPI documents, for what ours can break of them.

type Json = Record<string, unknown>;

interface Operation {
  readonly operationId?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly security?: readonly Json[];
  readonly parameters?: readonly { readonly in: string; readonly name: string }[];
  readonly responses: Json;
}

interface Document {
  readonly info: { readonly description?: string; readonly contact?: Json };
  readonly servers?: readonly { readonly url: string }[];
  readonly tags?: readonly { readonly name: string; readonly description?: string }[];
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: Readonly<Record<string, Json>>;
}

/** The faults of a document, each with its rule's name and its place. */
function faultsOf(document: Document): string[] {
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, at: `${method} ${path}`, operation })),
  );
  return [
    ...faultsOfDocument(document),
    ...operations.flatMap(({ path, at, operation }) =>
      faultsOfOperation(document, path, operation).map((fault) => `${fault}: ${at}`),
    ),
    ...repeated(operations.map(({ operation }) => operation.operationId)).map((id) => `operation-id-unique: ${id}`),
    ...unused(document).map((name) => `unused-component: ${name}`),
    ...badExamples(document, document.components, '#/components').map((at) => `valid-example: ${at}`),
    ...badExamples(document, document.paths as unknown as Json, '#/paths').map((at) => `valid-example: ${at}`),
  ];
}

function faultsOfDocument({ info, servers = [], tags = [] }: Document): string[] {
  return [
    ...(info.description ? [] : ['info-description']),
    ...(info.contact?.url || info.contact?.email ? [] : ['info-contact']),
    ...(servers.length > 0 && servers.every(({ url }) => /[^/]$/.test(url)) ? [] : ['servers']),
    ...tags.flatMap(({ name, description }) => (description ? [] : [`tag-description: ${name}`])),
    ...repeated(tags.map(({ name }) => name)).map((name) => `tags-unique: ${name}`),
  ];
}

function faultsOfOperation({ tags = [], components }: Document, path: string, operation: Operation): string[] {
  const { parameters = [], responses, security } = operation;
  const declared = tags.map(({ name }) => name);
  const inPath = parameters.filter((parameter) => parameter.in === 'path').map(({ name }) => name);
  const named = [...path.matchAll(/\{(\w+)\}/g)].map(([, name]) => name);
  const schemes = Object.keys(components.securitySchemes ?? {});
  return [
    ...(operation.operationId ? [] : ['operation-id']),
    ...(operation.description ? [] : ['operation-description']),
    ...(operation.tags?.length ? [] : ['operation-tags']),
    ...(operation.tags?.every((tag) => declared.includes(tag)) ? [] : ['tag-declared']),
    ...(Object.keys(responses).some((status) => /^[23]/.test(status)) ? [] : ['success-response']),
    ...(JSON.stringify(inPath.sort()) === JSON.stringify(named.sort()) ? [] : ['path-params']),
    ...(security?.flatMap((one) => Object.keys(one)).every((one) => schemes.includes(one))
      ? []
      : ['security-declared']),
    ...(repeated(parameters.map((parameter) => `${parameter.in} ${parameter.name}`)).length === 0
      ? []
      : ['parameters']),
  ];
}

const repeated = <T>(values: readonly T[]): T[] => values.filter((value, at) => values.indexOf(value) !== at);

/** Schemas, responses and headers that nothing refers to. */
function unused(document: Document): string[] {
  const text = JSON.stringify(document);
  return ['schemas', 'responses', 'headers'].flatMap((kind) =>
    Object.keys(document.components[kind] ?? {})
      .map((name) => `#/components/${kind}/${name}`)
      .filter((reference) => !text.includes(`"$ref":"${reference}"`)),
  );
}

/** Places whose examples do not fit the schema that they stand in, or beside. */
function badExamples(document: Document, part: Json, at: string): string[] {
  const { schema, example, examples } = part as { schema?: Json; example?: unknown; examples?: unknown };
  const shown = Array.isArray(examples) ? examples : [];
  const fits = (judge: Json, value: unknown) =>
    z.fromJSONSchema(resolved(judge, document) as never).safeParse(value).success;
  const isBad = shown.some((value) => !fits(part, value)) || (schema && 'example' in part && !fits(schema, example));
  const within = Object.entries(part).flatMap(([key, value]) =>
    typeof value === 'object' && value !== null && !/^(example|examples|enum|default)$/.test(key)
      ? badExamples(document, value as Json, `${at}/${key}`)
      : [],
  );
  return [...(isBad ? [at] : []), ...within];
}

/** With its references replaced by what they lead to. */
function resolved(value: unknown, document: Document): unknown {
  if (Array.isArray(value)) return value.map((one) => resolved(one, document));
  if (typeof value !== 'object' || value === null) return value;
  const { $ref } = value as { $ref?: string };
  const [, , kind = '', name = ''] = $ref?.split('/') ?? [];
  if ($ref !== undefined) return resolved(document.components[kind]?.[name], document);
  return Object.fromEntries(Object.entries(value).map(([key, one]) => [key, resolved(one, document)]));
}

const read = () =>
  JSON.parse(readFileSync(new URL('../../../../openapi/openapi.json', import.meta.url), 'utf8')) as Document;

test('the document breaks one rule, and means it: a check of a proof without its claim is always refused', () => {
  expect(faultsOf(read())).toEqual(['success-response: post /facilitator/verify']);
});

test('the document of the priced routes breaks none', () => {
  expect(faultsOf(pricedOnly(read() as never) as unknown as Document)).toEqual([]);
});

const GOOD = { $ref: '#/components/responses/Good' };

/** A document with one operation, into which each test puts one fault. */
const SOUND = {
  info: { description: 'A service.', contact: { url: 'https://here.example' } },
  servers: [{ url: 'https://here.example' }],
  tags: [{ name: 'free', description: 'Free' }],
  paths: {
    '/a/{id}': {
      get: {
        operationId: 'a',
        description: 'An answer.',
        tags: ['free'],
        security: [] as Json[],
        parameters: [{ in: 'path', name: 'id', schema: { type: 'string' }, example: 'x' }],
        responses: { 200: GOOD } as Json,
      },
    },
  },
  components: {
    schemas: { Answer: { type: 'object', properties: { count: { type: 'integer' } }, examples: [{ count: 1 }] } },
    responses: { Good: { content: { 'application/json': { schema: { $ref: '#/components/schemas/Answer' } } } } },
  } as Record<string, Json>,
};

type Sound = typeof SOUND;
const op = (document: Sound) => document.paths['/a/{id}'].get;

test('a sound document has no fault', () => expect(faultsOf(SOUND)).toEqual([]));

test.each<[fault: string, plant: (document: Sound) => unknown]>([
  ['info-description', ({ info }) => Reflect.deleteProperty(info, 'description')],
  ['info-contact', ({ info }) => Reflect.deleteProperty(info.contact, 'url')],
  ['servers', ({ servers }) => servers.push({ url: 'https://here.example/' })],
  ['tag-description: new', ({ tags }) => tags.push({ name: 'new', description: '' })],
  ['tags-unique: free', ({ tags }) => tags.push({ name: 'free', description: 'Again' })],
  ['operation-id: get /a/{id}', (document) => Object.assign(op(document), { operationId: '' })],
  ['operation-description: get /a/{id}', (document) => Object.assign(op(document), { description: '' })],
  ['operation-tags: get /a/{id}', (document) => op(document).tags.pop()],
  ['operation-id-unique: a', ({ paths }) => Object.assign(paths['/a/{id}'], { put: paths['/a/{id}'].get })],
  ['tag-declared: get /a/{id}', (document) => op(document).tags.push('unknown')],
  [
    'success-response: get /a/{id}',
    ({ paths }) => Object.assign(paths['/a/{id}'].get.responses, { 200: undefined, 404: GOOD }),
  ],
  ['path-params: get /a/{id}', (document) => Object.assign(op(document).parameters[0]!, { name: 'other' })],
  ['security-declared: get /a/{id}', (document) => op(document).security.push({ Key: [] })],
  [
    'unused-component: #/components/headers/Spare',
    ({ components }) => Object.assign(components, { headers: { Spare: {} } }),
  ],
  [
    'valid-example: #/components/schemas/Answer',
    ({ components }) => Object.assign(components.schemas!.Answer as Json, { examples: [{ count: 'one' }] }),
  ],
  [
    'valid-example: #/paths//a/{id}/get/parameters/0',
    (document) => Object.assign(op(document).parameters[0]!, { example: 1 }),
  ],
])('a fault is found: %s', (fault, plant) => {
  const document = structuredClone(SOUND);
  plant(document);
  expect(faultsOf(JSON.parse(JSON.stringify(document)))).toEqual([fault]);
});
