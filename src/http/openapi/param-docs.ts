import { z } from 'zod';
import type { Endpoint } from '../../catalogue/endpoint.ts';

type JsonSchema = Record<string, unknown>;

/** One query parameter as documents describe it. */
export interface ParamDoc {
  readonly name: string;
  readonly required: boolean;
  readonly description: string;
  readonly schema: Readonly<JsonSchema>;
}

type Described = Pick<Endpoint<never>, 'params' | 'example'>;

/** Kept, because six documents describe each endpoint. Made anew for each, the schemas took a thirtieth of a start's processor time. */
const docsOf = new WeakMap<Described, readonly ParamDoc[]>();

/**
 * Describes an endpoint's query parameters from the schema that parses them, so that documents and parser have the same bounds.
 * Required and default come from parsing an empty query, because zod leaves them out of the schema of a transformed value. An endpoint's description is
 * made once, and all callers share it.
 */
export function describeParams(endpoint: Described): readonly ParamDoc[] {
  const docs = docsOf.get(endpoint) ?? paramsOf(endpoint);
  docsOf.set(endpoint, docs);
  return docs;
}

function paramsOf(endpoint: Described): ParamDoc[] {
  return Object.entries(endpoint.params.shape).map(([name, param]) => {
    const absent = z.safeParse(param, undefined);
    const { description, $schema: _dialect, ...schema } = toJsonSchema(param, 'input');
    const example = endpoint.example.params[name];
    const integer = schema.type === 'integer';
    // The type already says that it is a whole number; the pattern of its text form would contradict the type.
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

/** JSON Schema 2020-12 of a zod type, as OpenAPI 3.1 takes it; bounds that only mean "exact in a double" are left out. */
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
