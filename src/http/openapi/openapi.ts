import swagger from '@fastify/swagger';
import Fastify from 'fastify';
import { z } from 'zod';
import type { Endpoint } from '../../catalogue/endpoint.ts';
import { describeParams } from '../../catalogue/params.ts';
import { type Mount, operationIdOf, pathOn, surfacesOf } from '../../catalogue/paths.ts';
import { createLlmsText, type Described, dearestRequirement, type Requirement } from '../documents.ts';
import { NO_SCHEMAS } from '../server-options.ts';
import { componentResponses, componentSchemas, describeResponses, UNREAD_RESPONSES } from './components.ts';
import {
  COMPONENT_HEADERS,
  COMPONENTS,
  type Declared,
  type Json,
  type Operation,
  type Route,
  reference,
} from './route.ts';
import { describeService, tagsWith } from './text.ts';

// The OpenAPI document. The plugin assembles it: each catalogue entry under its mounts, and what routes declare.

/** The interface's own version, not the package's. */
const INTERFACE_VERSION = '0.1.0';

interface OpenApiOptions extends Omit<Described, 'acceptsOf'> {
  readonly declared: Declared;
  /** Every way to pay, as a 402 offers them. By default the plain one alone. */
  acceptsOf?: Described['acceptsOf'];
  readonly mpp?: boolean;
  /** http, https or mailto. Without one the service's own address is used. */
  readonly contactUrl?: string | null;
}

type Terms = Required<Pick<OpenApiOptions, 'requirementOf' | 'acceptsOf'>>;

/**
 * OpenAPI 3.1, deterministic, from declarations only. The plugin assembles it on an instance that never listens: the
 * served routes have no schemas, because a second validator would cost time and could disagree.
 */
export async function createOpenApi(options: OpenApiOptions): Promise<Json> {
  const { catalogue, requirementOf, acceptsOf = (endpoint) => [requirementOf(endpoint)] } = options;
  const { declared, publicOrigin, mpp = false, contactUrl } = options;
  const scribe = Fastify({ exposeHeadRoutes: false, schemaController: NO_SCHEMAS });
  scribe.setValidatorCompiler(() => () => true);
  scribe.setSerializerCompiler(() => JSON.stringify);
  const info = {
    title: 'percall',
    version: INTERFACE_VERSION,
    description: describeService(dearestRequirement(catalogue, requirementOf), options.chain),
    contact: describeContact(contactUrl ?? publicOrigin),
    license: { name: 'MIT', identifier: 'MIT' },
    'x-guidance': createLlmsText(options),
  };
  await scribe.register(swagger, {
    convertConstToEnum: false,
    openapi: {
      openapi: '3.1.0',
      info,
      externalDocs: { url: `${publicOrigin}/llms.txt`, description: 'The same in short, for models' },
      servers: [{ url: publicOrigin }],
      tags: tagsWith(mpp),
      components: { securitySchemes: SECURITY_SCHEMES as Record<string, never> },
    },
  });
  // Crawlers treat a missing statement as unknown. Alternatives are payments.
  const add = ({ method, url, schema }: Operation) =>
    scribe.route({ method, url, schema: { security: [], ...schema }, handler: () => null });
  const sold = catalogue.flatMap((endpoint) => mountsOf(endpoint, options).map((mount) => ({ endpoint, mount })));
  for (const { endpoint, mount } of sold) {
    const schema = describeOperation(endpoint, mount, { requirementOf, acceptsOf });
    add({ method: 'GET', url: pathOn(endpoint, mount), schema });
  }
  const components: Components = new Map();
  for (const one of declared.operations) {
    const operation = 'schema' in one ? one : describeRoute(one, components);
    add({ ...operation, schema: inOrder(operation.schema) });
  }
  await scribe.ready();
  const document = structuredClone(scribe.swagger()) as Document;
  await scribe.close();
  addResponses(document, sold);
  return {
    ...document,
    'x-service-info': describeServiceInfo(publicOrigin),
    components: {
      schemas: componentSchemas(
        catalogue,
        mapValues({ ...declared.schemas, ...describeComponents(components) }, inOrder),
      ),
      responses: componentResponses(mpp),
      headers: COMPONENT_HEADERS,
      securitySchemes: SECURITY_SCHEMES,
    },
  };
}

/** By name, those that routes refer to. */
type Components = Map<string, z.core.$ZodType>;

/** A declared route as the plugin takes it. `found` gets the components that it names. */
function describeRoute({ method, url, ...route }: Route, found: Components): Operation {
  const { id: operationId, tag, summary, description, path, query, body, answers } = route;
  const responses = Object.entries(answers).map(([status, { description, type, schema }]) => [
    status,
    { description, ...(type && schema && { content: { [type]: { schema: describeSchema(schema, found) } } }) },
  ]);
  return {
    method,
    url,
    schema: {
      operationId,
      tags: [tag],
      summary,
      ...(description && { description }),
      ...(query && { querystring: describeMembers(query) }),
      ...(path && { params: describeMembers(path) }),
      ...(body && { body: describeSchema(body, found) }),
      response: Object.fromEntries(responses),
    },
  };
}

/** Parameters as those of an endpoint. */
function describeMembers(params: z.ZodObject): Json {
  const members = describeParams({ params, example: { params: {}, result: {} } });
  const required = members.filter((member) => member.required).map(({ name }) => name);
  // Empty values are refused everywhere.
  const properties = members.map(({ name, description, schema: { minLength: _1, ...schema } }) => [
    name,
    { ...schema, description },
  ]);
  return { type: 'object', properties: Object.fromEntries(properties), required };
}

/** JSON Schema with references to components, but for the one that is described. */
function describeSchema(type: z.core.$ZodType, found: Components, described?: z.core.$ZodType): Json {
  const schema = z.toJSONSchema(type, {
    io: 'input',
    override({ zodSchema, jsonSchema }) {
      const name = zodSchema === described ? undefined : COMPONENTS.get(zodSchema)?.name;
      if (name === undefined) return;
      if (!OWN.includes(name)) found.set(name, zodSchema);
      for (const key of Object.keys(jsonSchema)) delete jsonSchema[key];
      Object.assign(jsonSchema, reference('schemas', name));
    },
  });
  return plain(schema as Json);
}

/** The document has them whatever routes say. */
const OWN = ['Problem', 'Source'];

/** Components may name others, which come after them. */
function describeComponents(found: Components): Json {
  const described: Json = {};
  for (const [name, type] of found) described[name] = describeSchema(type, found, type);
  return described;
}

/** Says null as a type, and leaves out bounds that mean "exact in a double", and values of any form. */
function plain({ $schema: _1, $defs: _2, propertyNames: _3, anyOf, ...rest }: Json): Json {
  const schema: Json = anyOf === undefined ? rest : { ...eitherOf(anyOf as Json[]), ...rest };
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (String(schema.$ref).startsWith('#/$defs/')) delete schema.$ref;
  const { additionalProperties: others, properties, items } = schema;
  if (others === false) delete schema.additionalProperties;
  else if (isJson(others)) schema.additionalProperties = Object.keys(others).length === 0 || plain(others);
  if (isJson(properties)) schema.properties = mapValues(properties, plain);
  if (isJson(properties) && Object.keys(properties).length === 0) delete schema.properties;
  if (isJson(items)) schema.items = plain(items);
  return schema;
}

function eitherOf(forms: readonly Json[]): Json {
  const [form = {}, other] = forms.map(plain);
  if (forms.length !== 2 || other?.type !== 'null') return { anyOf: forms.map(plain) };
  return { ...form, type: [form.type, 'null'] };
}

const isJson = (value: unknown): value is Json => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The order of a schema's members in the document. Others follow. */
const ORDER = [
  ...['type', 'enum', 'properties', 'required', 'items', 'additionalProperties', 'pattern', 'minimum', 'maximum'],
  ...['maxLength', 'default', 'description', 'examples'],
];

/** Puts the members of a schema, and of those within it, into the order of all others. */
function inOrder(schema: Json): Json {
  const place = (key: string): number => (ORDER.includes(key) ? ORDER.indexOf(key) : ORDER.length);
  const keys = Object.keys(schema).sort((one, other) => place(one) - place(other));
  return Object.fromEntries(keys.map((key) => [key, within(key, schema[key])]));
}

/** `properties` and the like have schemas by name, whose order stays. */
function within(key: string, value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  if (key === 'examples') return value;
  return ['properties', 'response', 'content'].includes(key)
    ? mapValues(value as Json, inOrder)
    : inOrder(value as Json);
}

function mapValues(values: Json, change: (value: Json) => Json): Json {
  return Object.fromEntries(Object.entries(values).map(([name, value]) => [name, change(value as Json)]));
}

function describeContact(url: string): Json {
  const mailto = /^mailto:([^?]+)/.exec(url)?.[1];
  return mailto === undefined ? { url } : { email: mailto };
}

/** What is sold in USDC may stand under two: MPP asks for the plain entry alone. */
function mountsOf(endpoint: Endpoint<never>, { mpp = false, requirementOf, acceptsOf }: OpenApiOptions): Mount[] {
  const isPlain = (): boolean => acceptsOf?.(endpoint).includes(requirementOf(endpoint)) ?? true;
  return surfacesOf(endpoint).flatMap((surface): Mount[] =>
    surface === 'paid' && mpp && isPlain() ? ['paid', 'mpp'] : [surface],
  );
}

function describeOperation(endpoint: Endpoint<never>, mount: Mount, terms: Terms): Json {
  const params = describeParams(endpoint);
  const properties = params.map(({ name, description, schema }) => [name, { ...schema, description }]);
  const required = params.filter((param) => param.required).map(({ name }) => name);
  return {
    operationId: operationIdOf(endpoint.path, mount),
    tags: [mount],
    summary: endpoint.label,
    description: endpoint.summary,
    ...(params.length > 0
      ? { querystring: { type: 'object', properties: Object.fromEntries(properties), required } }
      : {}),
    ...describePayment(endpoint, mount, terms),
  };
}

/** The header, `security`, and `x-payment-info` in two forms for crawlers. MPP's offers need a `Payment` challenge. */
function describePayment(endpoint: Endpoint<never>, mount: Mount, terms: Terms): Json {
  const { price } = endpoint;
  if (price === null || mount === 'free') return {};
  const { security, header, ...ways } = waysToPay(endpoint, mount, terms);
  const [name, description] = header;
  return {
    headers: { type: 'object', properties: { [name]: { type: 'string', description } } },
    ...(security && { security }),
    'x-payment-info': { price: { mode: 'fixed', currency: 'USD', amount: price.usd }, ...ways },
  };
}

interface Ways {
  readonly protocols: readonly Json[];
  readonly offers?: readonly Json[];
  readonly security?: readonly Json[];
  readonly header: readonly [name: string, description: string];
}

function waysToPay(endpoint: Endpoint<never>, mount: Exclude<Mount, 'free'>, terms: Terms): Ways {
  switch (mount) {
    case 'paid':
      return {
        protocols: terms.acceptsOf(endpoint).map(x402),
        header: [SIGNATURE, `${PAYLOAD}; without it the answer is 402`],
      };
    case 'lightning':
      return {
        protocols: LIGHTNING_PROTOCOLS,
        offers: LIGHTNING_OFFERS,
        security: [{}, { L402: [] }, { Payment: [] }],
        header: [
          SIGNATURE,
          `${PAYLOAD}: \`accepted\` as offered, \`payload.preimage\` of the paid invoice; without it, ` +
            'and without an Authorization of L402 or Payment, the answer is 402',
        ],
      };
    case 'mpp': {
      const { amount, asset: currency } = terms.requirementOf(endpoint);
      const charge = { intent: 'charge', method: 'evm', currency };
      return {
        protocols: [{ mpp: charge }],
        offers: [{ ...charge, amount }],
        security: [{ Payment: [] }],
        header: ['Authorization', '`Payment <base64url JSON>`; without it the answer is 402'],
      };
    }
  }
}

const LIGHTNING_PROTOCOLS: readonly Json[] = [
  { x402: { protocol: 'x402', version: 2, scheme: 'exact', asset: 'BTC', maxTimeoutSeconds: 300 } },
  { l402: { currency: 'sat' } },
  { mpp: { method: 'lightning', intent: 'charge', currency: 'sat' } },
];

/** `amount` is null, because the 402 names it: the sats are quoted at the rate of the moment. */
const LIGHTNING_OFFERS: readonly Json[] = [
  {
    intent: 'charge',
    method: 'lightning',
    amount: null,
    currency: 'sat',
    description: 'Whole sats, quoted in the 402',
  },
];

const SIGNATURE = 'PAYMENT-SIGNATURE';
const PAYLOAD = 'Base64 JSON of an x402 version 2 payment payload';

function x402({ scheme, network, asset, amount, payTo, maxTimeoutSeconds }: Requirement): Json {
  return { x402: { protocol: 'x402', version: 2, scheme, network, asset, amount, payTo, maxTimeoutSeconds } };
}

type Document = Json & { readonly paths: Record<string, Partial<Record<'get' | 'post', Json>>> };

/** The plugin takes no references to responses. */
function addResponses({ paths }: Document, sold: readonly { endpoint: Endpoint<never>; mount: Mount }[]): void {
  for (const { endpoint, mount } of sold) {
    const operation = paths[pathOn(endpoint, mount)]?.get;
    if (operation) operation.responses = describeResponses(endpoint, mount);
  }
  for (const operation of Object.values(paths).flatMap((path) => Object.values(path))) {
    operation.responses = { ...UNREAD_RESPONSES, ...(operation.responses as Json) };
  }
}

/** No operation refers to `x402`: crawlers take `apiKey` for an account. It has the header as a parameter. */
const SECURITY_SCHEMES: Json = {
  x402: {
    type: 'apiKey',
    in: 'header',
    name: 'PAYMENT-SIGNATURE',
    description: 'x402 version 2: base64 JSON of the payment that the PAYMENT-REQUIRED header of the 402 asks for.',
  },
  L402: {
    type: 'http',
    scheme: 'L402',
    description:
      'L402 (LSAT): `L402 <macaroon>:<preimage>`, the macaroon as the 402’s WWW-Authenticate has it, ' +
      'the preimage of the paid invoice in hex.',
  },
  Payment: {
    type: 'http',
    scheme: 'Payment',
    description:
      'MPP: `Payment <base64url JSON>`, which repeats a challenge of the 402’s WWW-Authenticate with its proof.',
  },
};

/** For directories of MPP services. */
function describeServiceInfo(publicOrigin: string): Json {
  const docs = { homepage: `${publicOrigin}/`, apiReference: `${publicOrigin}/docs`, llms: `${publicOrigin}/llms.txt` };
  return { categories: ['data', 'developer-tools', 'search'], docs };
}
