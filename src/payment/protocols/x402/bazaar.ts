import { z } from 'zod';
import type { Endpoint } from '../../../catalogue/endpoint.ts';
import type { SoldTool } from '../../protocol.ts';

// x402's discovery extension in the official `bazaar` form: a directory that sees a 402 or a payment can list and call
// what is sold from it.

type Json = Record<string, unknown>;
type Described = Pick<Endpoint<never>, 'params' | 'example'>;

const made = new WeakMap<Described, { readonly bazaar: Json }>();

/** An example, the parameters' schema, and a JSON object as answer. Short: every 402 and every payment repeats it. */
export function bazaarExtension(endpoint: Described): { readonly bazaar: Json } {
  const known = made.get(endpoint);
  if (known) return known;
  const extension = { bazaar: describe(endpoint) };
  made.set(endpoint, extension);
  return extension;
}

function describe({ params, example }: Described): Json {
  const members = Object.entries(params.shape).map(([name, param]) => [name, schemaOf(param)] as const);
  const required = Object.entries(params.shape).flatMap(([name, param]) =>
    z.safeParse(param, undefined).success ? [] : [name],
  );
  const queryParams = {
    type: 'object',
    properties: Object.fromEntries(members),
    ...(required.length > 0 && { required }),
    additionalProperties: false,
  };
  // With its schema's type, because a query has only text.
  const shown = members.flatMap(([name, { type }]) => {
    const given = example.params[name];
    return given === undefined ? [] : [[name, type === 'integer' ? Number(given) : given] as const];
  });
  const input = { type: 'http', method: 'GET', queryParams: Object.fromEntries(shown) };
  return {
    info: { input, output: { type: 'json' } },
    schema: {
      type: 'object',
      properties: {
        input: { type: 'object', properties: { queryParams } },
        output: { type: 'object', properties: { example: { type: 'object' } } },
      },
      required: ['input'],
    },
  };
}

/** From the schema that also parses the parameter. */
function schemaOf(param: z.core.$ZodType): Json {
  const { type, enum: values, minimum, maximum } = z.toJSONSchema(param, { io: 'input' }) as Json;
  return { type, enum: values, minimum, maximum };
}

/** For a tool, in the form for MCP: how to call it, and an example of its answer. */
export function toolBazaarExtension(
  endpoint: Pick<Endpoint<never>, 'example' | 'summary'>,
  { name, inputSchema }: SoldTool,
) {
  const input = {
    type: 'mcp',
    toolName: name,
    description: endpoint.summary,
    transport: 'streamable-http',
    inputSchema,
    example: endpoint.example.params,
  };
  const properties = {
    type: { type: 'string', const: 'mcp' },
    toolName: { type: 'string' },
    description: { type: 'string' },
    transport: { type: 'string', enum: ['streamable-http'] },
    inputSchema: { type: 'object' },
    example: { type: 'object' },
  };
  const required = ['type', 'toolName', 'inputSchema'];
  return {
    bazaar: {
      info: { input, output: { type: 'json', example: endpoint.example.result } },
      schema: {
        $schema: 'https://json-schema.org/draft/2020-12/schema',
        type: 'object',
        properties: {
          input: { type: 'object', properties, required, additionalProperties: false },
          output: {
            type: 'object',
            properties: { type: { type: 'string' }, example: { type: 'object' } },
            required: ['type'],
          },
        },
        required: ['input'],
      },
    },
  };
}
