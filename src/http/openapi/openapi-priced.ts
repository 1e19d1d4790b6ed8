import type { Json } from './openapi-shapes.ts';

interface Operation {
  readonly operationId: string;
  readonly tags: readonly string[];
  readonly summary: string;
  readonly security: unknown;
  readonly parameters?: readonly { in: string; name: string; required: boolean; schema: Json; description?: string }[];
  readonly responses: Readonly<Record<string, unknown>>;
  readonly 'x-payment-info'?: unknown;
}

/** What a priced operation answers, in the form that a crawler needs. The whole document has the schemas. */
const ANSWERS = { 200: { description: 'The answer' }, 402: { description: 'Not paid; its headers say how to pay' } };

/**
 * The part of the OpenAPI document that a crawler of priced routes needs: each priced operation with its parameters, price and ways to pay, without
 * answers' schemas. Directories of paid services read no more than 64 KiB, and the whole document is several times as large.
 */
export function pricedOnly(document: Json): Json {
  const { openapi, info, servers, components, paths = {} } = document;
  const { title, version, contact, license } = (info ?? {}) as Json;
  const { securitySchemes } = (components ?? {}) as Json;
  const priced = Object.entries(paths as Record<string, { get?: Operation }>).flatMap(([path, { get }]) =>
    get?.['x-payment-info'] ? [[path, { get: slim(get) }]] : [],
  );
  return {
    openapi,
    info: { title, version, description: DESCRIPTION, contact, license },
    'x-service-info': document['x-service-info'],
    servers,
    paths: Object.fromEntries(priced),
    components: { securitySchemes },
  };
}

const DESCRIPTION =
  'The priced routes alone, for crawlers that read no more than 64 KiB. The whole document is at /openapi.json. Only the 402 of a route is binding.';

function slim(operation: Operation): Json {
  const { operationId, tags, summary, security, parameters = [] } = operation;
  // The header of a payment is in the security schemes.
  const query = parameters.filter((parameter) => parameter.in === 'query');
  return {
    ...{ operationId, tags, summary, security },
    ...(query.length > 0 && {
      parameters: query.map(({ name, required, schema }) => ({ name, in: 'query', required, schema })),
    }),
    responses: ANSWERS,
    'x-payment-info': operation['x-payment-info'],
  };
}
