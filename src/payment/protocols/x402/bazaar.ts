import { z } from 'zod';
import type { Endpoint } from '../../../catalogue/endpoint.ts';
import { own } from '../../../lib/own-property.ts';

/**
 * Longest JSON of one extension. It is sent in every 402 and comes back in every stock client's payment. With the rest of a challenge, in base64,
 * PAYMENT-REQUIRED stays within 6 KiB (nginx takes 8 KiB for a request's header line, Node's clients 16 KiB of headers).
 */
const MAX_BYTES = 3400;

type Json = Record<string, unknown>;
type Described = Pick<Endpoint<never>, 'params' | 'result' | 'example'>;

/** How much an extension contains. */
interface Detail {
  /** Whether parameters have descriptions. */
  readonly words: boolean;
  /** How many levels of the answer's schema it contains. The example shows the rest. */
  readonly depth: number;
  readonly example: boolean;
}

/** From the most to the least that is still a valid extension. The first that fits is used. */
const DETAILS: readonly Detail[] = [
  { words: true, depth: Number.POSITIVE_INFINITY, example: true },
  { words: false, depth: Number.POSITIVE_INFINITY, example: true },
  { words: false, depth: 3, example: true },
  { words: false, depth: 2, example: true },
  { words: false, depth: 1, example: true },
  { words: false, depth: 0, example: true },
  { words: false, depth: 0, example: false },
];

const made = new WeakMap<Described, Map<number, { readonly bazaar: Json }>>();

/**
 * x402's discovery extension for a route: how to call it, an example of its answer, and the schemas of both. A directory that sees a 402 or a payment
 * can list and call the route from it. It has the official `bazaar` form and at most `maxBytes`. Made once for each endpoint and size.
 */
export function bazaarExtension(endpoint: Described, maxBytes = MAX_BYTES): { readonly bazaar: Json } {
  const sizes = made.get(endpoint) ?? new Map<number, { readonly bazaar: Json }>();
  const known = sizes.get(maxBytes);
  if (known) return known;
  const input = Object.entries(endpoint.params.shape).map(([name, param]) => readParam(endpoint, name, param));
  const output = z.toJSONSchema(endpoint.result, { io: 'output' }) as Json;
  const extensionOf = (detail: Detail) => ({ bazaar: describe(input, output, endpoint.example.result, detail) });
  const fits = (one: object) => Buffer.byteLength(JSON.stringify(one)) <= maxBytes;
  const extension = DETAILS.map(extensionOf).find(fits) ?? extensionOf(DETAILS.at(-1) as Detail);
  made.set(endpoint, sizes.set(maxBytes, extension));
  return extension;
}

/** One query parameter, from the schema that also parses it. */
interface Param {
  readonly name: string;
  readonly required: boolean;
  readonly example: unknown;
  readonly schema: Json;
  readonly description: unknown;
}

function readParam({ example }: Described, name: string, param: z.core.$ZodType): Param {
  const { description, minimum, maximum, ...schema } = z.toJSONSchema(param, { io: 'input' }) as Json;
  const given = example.params[name];
  return {
    name,
    required: !z.safeParse(param, undefined).success,
    // With its schema's type, because a query has only text.
    example: schema.type === 'integer' && given !== undefined ? Number(given) : given,
    schema: { ...compact(schema, 0, undefined), minimum, maximum },
    description,
  };
}

function describe(params: readonly Param[], output: Json, result: Json, { words, depth, example }: Detail): Json {
  const members = params.map(({ name, schema, description }) => [name, { ...schema, ...(words && { description }) }]);
  const queryParams = {
    type: 'object',
    properties: Object.fromEntries(members),
    required: params.filter(({ required }) => required).map(({ name }) => name),
    additionalProperties: false,
  };
  const shown = params.filter((param) => param.example !== undefined).map((param) => [param.name, param.example]);
  const input = { type: 'http', method: 'GET', queryParams: Object.fromEntries(shown) };
  const properties = {
    type: { type: 'string', const: 'http' },
    method: { type: 'string', enum: ['GET'] },
    queryParams,
  };
  return discoveryForm(
    { input, output: { type: 'json', ...(example && { example: result }) } },
    { properties, required: ['type', 'method'] },
    { ...compact(output, depth, example && result), type: 'object' },
  );
}

/** The official form: `info` and the schema that `info` satisfies, made from its input's members and the schema of its example. */
export function discoveryForm(
  info: { readonly input: Json; readonly output: Json },
  input: { readonly properties: Json; readonly required: readonly string[] },
  example: Json,
) {
  return {
    info,
    schema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        input: { type: 'object', ...input, additionalProperties: false },
        output: { type: 'object', properties: { type: { type: 'string' }, example }, required: ['type'] },
      },
      required: ['input'],
    },
  };
}

/**
 * Names and types of a schema, down to a depth. It may omit constraints but never states a false one. It does not repeat nested values that the
 * example shows.
 */
function compact(schema: Json, depth: number, example: unknown): Json {
  const { type, const: only, enum: values, properties, items, anyOf } = schema;
  if (Array.isArray(anyOf)) return compactUnion(anyOf, depth, example);
  const within = (one: Json, key: PropertyKey) => {
    const shown = own(example, key);
    return compact(one, isShown(one, shown) ? 0 : depth - 1, shown);
  };
  const members = depth > 0 && properties ? Object.entries(properties as Record<string, Json>) : null;
  return {
    ...(type !== undefined && { type }),
    ...(only !== undefined && { const: only }),
    ...(values !== undefined && { enum: values }),
    ...(members && { properties: Object.fromEntries(members.map(([name, one]) => [name, within(one, name)])) }),
    ...(depth > 0 && items !== undefined && { items: within(items as Json, 0) }),
  };
}

/** Whether an example shows every field and element of its schema. An example cannot show the other values of an enum or a constant. */
function isShown(schema: Json, example: unknown): boolean {
  const isWhole = typeof example === 'object' && !/null|\[\]|\{\}/.test(JSON.stringify(example));
  return isWhole && !/"(enum|const)":/.test(JSON.stringify(schema));
}

/** A union of a type with null becomes a list of two types, which is shorter. */
function compactUnion(anyOf: readonly Json[], depth: number, example: unknown): Json {
  const [first, ...more] = anyOf.filter(({ type }) => type !== 'null').map((one) => compact(one, depth, example));
  const plain = first !== undefined && more.length === 0 && typeof first.type === 'string';
  if (plain && anyOf.length === 2 && first.const === undefined) {
    const values = Array.isArray(first.enum) ? { enum: [...first.enum, null] } : {};
    return { ...first, ...values, type: [first.type, 'null'] };
  }
  return { anyOf: anyOf.map((one) => compact(one, depth, example)) };
}
