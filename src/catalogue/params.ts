import { z } from 'zod';
import { BadParameter, type ParameterError } from '../errors.ts';
import type { Endpoint } from './endpoint.ts';

// One schema parses and describes an endpoint's parameters, so that documents and parser agree on the bounds.

/** As the router gives it: a repeated parameter is an array. */
export type Query = Record<string, unknown>;

/** Faulty names that one answer lists: a URL has room for thousands, and each fault is longer than its name. */
export const MOST_NAMED = 10;
/** Characters of a faulty name that an answer repeats. */
const MOST_OF_NAME = 100;

export type Parsed = Pick<Endpoint<never>, 'params'> & Partial<Pick<Endpoint<never>, 'example'>>;

/** Throws BadParameter with every fault. Unknown and repeated names are faults: no typing error is paid for. */
export function parseParams(endpoint: Parsed, query: Query): unknown {
  const errors: ParameterError[] = [];
  const known = endpoint.params.shape;
  const given: Query = {};
  for (const [path, value] of Object.entries(query)) {
    if (errors.length === MOST_NAMED) break;
    if (!Object.hasOwn(known, path)) {
      errors.push(faultOf(path, unknownName(Object.keys(known))));
    } else if (Array.isArray(value)) {
      errors.push(faultOf(path, 'given more than once'));
    } else {
      given[path] = value;
    }
  }
  const parsed = endpoint.params.safeParse(given);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      const path = String(issue.path[0] ?? '');
      const isThere = Object.hasOwn(query, path);
      if (isThere && !Object.hasOwn(given, path)) continue;
      const isMissing = Object.hasOwn(known, path) && !isThere && issue.message.startsWith(UNSAID);
      errors.push({ path, message: isMissing ? missing(endpoint.example?.params[path]) : issue.message });
    }
  }
  if (errors.length > 0 || !parsed.success) throw new BadParameter(errors);
  return parsed.data;
}

/** A long name that the caller made up is named by its beginning. */
export function faultOf(name: string, message: string): ParameterError {
  return { path: name.slice(0, MOST_OF_NAME), message };
}

/** Most unknown names are typing errors, so it says which there are. */
function unknownName(names: readonly string[]): string {
  return names.length === 0
    ? 'no such parameter; this route takes none'
    : `no such parameter; there are ${names.join(', ')}`;
}

/** How zod's own message about a missing value begins; an endpoint's own message says more. */
const UNSAID = 'Invalid input';
const MISSING = 'missing';

function missing(example: string | undefined): string {
  return example === undefined ? MISSING : `${MISSING}, for example ${example}`;
}

/** A whole number: digits only, within `bounds`. OpenAPI shows it as an integer. */
export function integerParam(bounds: { min: number; max: number; default: number; description: string }) {
  const { min, max, description } = bounds;
  const message = `a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message)
    .default(bounds.default)
    .meta({ description, type: 'integer', minimum: min, maximum: max, default: bounds.default });
}

type JsonSchema = Record<string, unknown>;

export interface ParamDoc {
  readonly name: string;
  readonly required: boolean;
  readonly description: string;
  readonly schema: Readonly<JsonSchema>;
}

/** Six documents describe each endpoint: made anew for each, the schemas took a thirtieth of a start's time. */
const docsOf = new WeakMap<Parsed, readonly ParamDoc[]>();

/** Made once, and shared by all callers. */
export function describeParams(endpoint: Parsed): readonly ParamDoc[] {
  const docs = docsOf.get(endpoint) ?? paramsOf(endpoint);
  docsOf.set(endpoint, docs);
  return docs;
}

function paramsOf(endpoint: Parsed): ParamDoc[] {
  return Object.entries(endpoint.params.shape).map(([name, param]) => {
    // zod leaves required and default out of the schema of a transformed value, so an absent one is parsed.
    const absent = z.safeParse(param, undefined);
    const { description, ...schema } = toJsonSchema(param, 'input');
    const example = endpoint.example?.params[name];
    const integer = schema.type === 'integer';
    if (integer) delete schema.pattern;
    if (absent.success && absent.data !== undefined) schema.default = asWritten(absent.data);
    if (example !== undefined) schema.examples = [integer ? Number(example) : example];
    return { name, required: !absent.success, description: String(description ?? ''), schema };
  });
}

/** A default as a query writes it: a list is one text with commas. */
function asWritten(value: unknown): unknown {
  return Array.isArray(value) ? value.join(',') : value;
}

/** JSON Schema 2020-12, as OpenAPI 3.1 takes it. Bounds that only mean "exact in a double" are left out. */
export function toJsonSchema(type: z.core.$ZodType, io: 'input' | 'output'): JsonSchema {
  const { $schema: _dialect, ...schema } = z.toJSONSchema(type, {
    io,
    override: ({ jsonSchema }) => {
      if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum;
      if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum;
    },
  });
  return schema as JsonSchema;
}
