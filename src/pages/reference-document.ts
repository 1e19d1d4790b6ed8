import { followReference } from '../lib/untrusted.ts';

// The OpenAPI document as the reference shows it: operations with their parameters, answers and examples.

/** `example`: one that the operation accepts; empty where an optional parameter has none. */
export interface Param {
  readonly name: string;
  readonly place: 'path' | 'query';
  readonly isRequired: boolean;
  readonly text: string;
  readonly example: string;
  readonly choices: readonly string[];
  readonly isInteger: boolean;
}

export interface Answer {
  readonly status: string;
  readonly text: string;
  readonly fields: readonly Field[];
  /** JSON; null when the document has no example. */
  readonly example: string | null;
}

/** `name` is a path: `records.A[].ttl`. */
interface Field {
  readonly name: string;
  readonly type: string;
  readonly text: string;
}

export interface Operation {
  readonly id: string;
  readonly method: 'GET' | 'POST';
  readonly path: string;
  readonly tag: string;
  readonly title: string;
  readonly text: string;
  /** Decimal USD; null for a free operation. */
  readonly priceUsd: string | null;
  readonly params: readonly Param[];
  /** An example in JSON; null when the operation takes none. */
  readonly body: string | null;
  readonly answers: readonly Answer[];
}

export interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, unknown>>>>;
  readonly components?: {
    readonly schemas?: Readonly<Record<string, unknown>>;
    readonly responses?: Readonly<Record<string, unknown>>;
  };
}

interface RawOperation {
  readonly operationId: string;
  readonly summary?: string;
  readonly description?: string;
  readonly tags?: readonly string[];
  readonly parameters?: readonly {
    readonly name: string;
    readonly in: string;
    readonly required?: boolean;
    readonly description?: string;
    readonly example?: unknown;
    readonly schema?: Schema;
  }[];
  readonly requestBody?: { readonly content?: Content };
  readonly responses?: Readonly<Record<string, { readonly description?: string; readonly content?: Content }>>;
  readonly 'x-payment-info'?: { readonly price?: { readonly amount?: string } };
}

type Content = Readonly<
  Record<
    string,
    {
      readonly schema?: Schema;
      readonly example?: unknown;
    }
  >
>;

/** The parts of JSON Schema that our document uses. */
interface Schema {
  readonly $ref?: string;
  readonly type?: string | readonly string[];
  readonly description?: string;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  readonly items?: Schema;
  readonly anyOf?: readonly Schema[];
  readonly enum?: readonly unknown[];
  readonly const?: unknown;
  readonly default?: unknown;
  readonly example?: unknown;
  readonly examples?: readonly unknown[];
}

/** A reference that leads nowhere gives an empty object. */
type Resolve = <T extends object>(part: T) => T;

/** Reads every operation, in the document's order. */
export function readDocument(document: Document): Operation[] {
  const resolve: Resolve = <T extends object>(part: T): T => (followReference(document, part) ?? {}) as T;
  return Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, raw]) => readOperation(path, method, raw as RawOperation, resolve)),
  );
}

function readOperation(path: string, method: string, raw: RawOperation, resolve: Resolve): Operation {
  const { operationId: id, summary = '', description = '', tags = [], parameters = [], requestBody, responses } = raw;
  const taken = requestBody?.content?.['application/json'];
  return {
    id,
    method: method === 'post' ? 'POST' : 'GET',
    path,
    tag: tags[0] ?? 'meta',
    title: summary,
    text: description,
    priceUsd: raw['x-payment-info']?.price?.amount ?? null,
    params: parameters.flatMap((param) => readParam(param, resolve)),
    body: taken ? JSON.stringify(bodyExample(taken, resolve)) : null,
    answers: Object.entries(responses ?? {}).map(([status, response]) =>
      readAnswer(status, resolve(response), resolve),
    ),
  };
}

/** Headers are left out: the clients of the payment protocols send them. */
function readParam(param: NonNullable<RawOperation['parameters']>[number], resolve: Resolve): Param[] {
  const { name, required = false, description = '', in: place } = param;
  if (place !== 'path' && place !== 'query') return [];
  const schema = resolve(param.schema ?? {});
  const example = param.example ?? schema.examples?.[0] ?? schema.default;
  return [
    {
      name,
      place,
      isRequired: required,
      text: description,
      example: example === undefined || example === null ? '' : String(example),
      choices: (schema.enum ?? []).map(String),
      isInteger: schema.type === 'integer',
    },
  ];
}

function readAnswer(
  status: string,
  { description = '', content = {} }: NonNullable<RawOperation['responses']>[string],
  resolve: Resolve,
): Answer {
  const [media] = Object.values(content);
  const isGood = status.startsWith('2');
  const example = media?.example ?? (media?.schema && resolve(media.schema).examples?.[0]);
  return {
    status,
    text: description,
    // All problems have one shape, which the page explains once.
    fields: isGood && media?.schema ? membersOf(media.schema, '', 0, resolve) : [],
    example: isGood && example !== undefined ? JSON.stringify(example, null, 2) : null,
  };
}

/** The depth of members that are shown. Answers nest no deeper. */
const MAX_DEPTH = 4;
/** With more values a type is unreadable. */
const MAX_VALUES = 8;

/** The members of an answer, those of nested objects and lists included, in the schema's order. */
function membersOf(given: Schema, prefix: string, depth: number, resolve: Resolve): Field[] {
  const schema = formOf(given, resolve);
  if (depth > MAX_DEPTH) return [];
  if (schema.items) return membersOf(schema.items, `${prefix}[]`, depth, resolve);
  return Object.entries(schema.properties ?? {}).flatMap(([name, raw]) => {
    const member = resolve(raw);
    const path = prefix === '' ? name : `${prefix}.${name}`;
    const text = raw.description ?? member.description ?? '';
    return [{ name: path, type: typeOf(raw, resolve), text }, ...membersOf(member, path, depth + 1, resolve)];
  });
}

/** Of alternatives, the one that has members: the others are null. */
function formOf(given: Schema, resolve: Resolve): Schema {
  const schema = resolve(given);
  const forms = (schema.anyOf ?? []).map((form) => formOf(form, resolve));
  return forms.find(({ properties, items }) => properties ?? items) ?? schema;
}

function typeOf(given: Schema, resolve: Resolve): string {
  const schema = resolve(given);
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum && schema.enum.length <= MAX_VALUES)
    return schema.enum.map((value) => JSON.stringify(value)).join(' or ');
  if (schema.anyOf) return [...new Set(schema.anyOf.map((form) => typeOf(form, resolve)))].join(' or ');
  if (schema.items) return `list of ${typeOf(schema.items, resolve)}`;
  return [schema.type ?? 'any'].flat().join(' or ');
}

/** The document's own example of a body, or one made of its members' examples. */
function bodyExample({ example, schema = {} }: Content[string], resolve: Resolve): unknown {
  return example ?? exampleOf(resolve(schema), resolve);
}

/** The schema's own example, or one that is made of the examples of its required members. */
function exampleOf(schema: Schema, resolve: Resolve): unknown {
  const own = schema.example ?? schema.examples?.[0] ?? schema.const ?? schema.default ?? schema.enum?.[0];
  if (own !== undefined) return own;
  if (schema.properties === undefined) return schema.type === 'object' ? {} : null;
  const required = schema.required ?? [];
  return Object.fromEntries(
    Object.entries(schema.properties).flatMap(([name, member]) =>
      required.includes(name) ? [[name, exampleOf(resolve(member), resolve)]] : [],
    ),
  );
}
