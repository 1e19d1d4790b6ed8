import swagger from '@fastify/swagger';
import Fastify from 'fastify';
import type { Endpoint } from '../../catalogue/endpoint.ts';
import { type Mount, operationIdOf, pathOn, surfacesOf } from '../../catalogue/paths.ts';
import { createLlmsText, type Described, dearestRequirement, type Requirement } from '../documents.ts';
import { NO_SCHEMAS } from '../server-options.ts';
import {
  type Components,
  componentHeaders,
  componentResponses,
  componentSchemas,
  describeAnswer,
  describeMembers,
  describeQuery,
  describeResponses,
  describeSchema,
  type Json,
  mapValues,
  UNREAD_RESPONSES,
} from './components.ts';
import type { Mounted, Route } from './route.ts';
import { describeService, tagsWith } from './text.ts';

// The OpenAPI document. The plugin assembles it: each catalogue entry under its mounts, and what routes declare.

/** The interface's own version, not the package's. */
const INTERFACE_VERSION = '0.1.0';

interface OpenApiOptions extends Omit<Described, 'acceptsOf'> {
  /** The routes that are no entries, in their order. */
  readonly declared: readonly Route[];
  /** What is served; the document has nothing else. Absent: everything. */
  readonly mounted?: Mounted['mounted'];
  /** Every way to pay, as a 402 offers them. By default the plain one alone. */
  acceptsOf?: Described['acceptsOf'];
  readonly mpp?: boolean;
  /** http, https or mailto. Without one the service's own address is used. */
  readonly contactUrl?: string | null;
}

/** A route in the form that the plugin takes, but for its answers: it takes no references to them. */
interface Operation extends Pick<Route, 'method'> {
  readonly url: string;
  readonly schema: Json;
  readonly responses: Json;
}

type Terms = Required<Pick<OpenApiOptions, 'requirementOf' | 'acceptsOf'>>;

/**
 * OpenAPI 3.1, deterministic, from declarations only. The plugin assembles it on an instance that never listens: the
 * served routes have no schemas, because a second validator would cost time and could disagree.
 */
export async function createOpenApi(options: OpenApiOptions): Promise<Document> {
  const { catalogue, requirementOf, acceptsOf = (endpoint) => [requirementOf(endpoint)] } = options;
  const { publicOrigin, mpp = false, contactUrl } = options;
  const found: Components = new Map();
  const responses = componentResponses(mpp, found);
  const operations = [
    ...catalogue.flatMap((endpoint) =>
      mountsOf(endpoint, options).map((mount) => describeOperation(endpoint, mount, { requirementOf, acceptsOf })),
    ),
    ...mountedOf(options).map((route) => describeRoute(route, found)),
  ];
  const schemas = componentSchemas(catalogue, found);
  const components: Json = { schemas, responses, headers: componentHeaders(), securitySchemes: SECURITY_SCHEMES };
  const info = {
    title: 'percall',
    version: INTERFACE_VERSION,
    description: describeService(dearestRequirement(catalogue, requirementOf), options.chain),
    contact: describeContact(contactUrl ?? publicOrigin),
    license: { name: 'MIT', identifier: 'MIT' },
    'x-guidance': createLlmsText(options),
  };
  const openapi = {
    openapi: '3.1.0',
    info,
    components: { securitySchemes: SECURITY_SCHEMES as Record<string, never> },
    servers: [{ url: publicOrigin }],
    tags: tagsWith(mpp),
    externalDocs: { url: `${publicOrigin}/llms.txt`, description: 'The same in short, for models' },
    'x-service-info': describeServiceInfo(publicOrigin),
  };
  const scribe = Fastify({ exposeHeadRoutes: false, schemaController: NO_SCHEMAS });
  await scribe.register(swagger, { convertConstToEnum: false, openapi });
  for (const { method, url, schema } of operations) {
    scribe.route({ method, url, config: { swaggerTransform: () => ({ schema, url }) }, handler: () => null });
  }
  await scribe.ready();
  const document = scribe.swagger() as Document;
  await scribe.close();
  const answers = new Map(operations.map(({ schema, responses }) => [schema.operationId, responses]));
  for (const operation of Object.values(document.paths).flatMap((path) => Object.values(path))) {
    operation.responses = answers.get(operation.operationId);
  }
  // The plugin would convert what examples hold, as if it were schemas.
  return { ...document, components };
}

type Document = Json & { readonly paths: Record<string, Partial<Record<'get' | 'post', Json>>> };

/** The mounted ones. Those that the list does not know come last. */
function mountedOf({ declared, mounted }: OpenApiOptions): readonly Route[] {
  if (!mounted) return declared;
  const seen = new Set(mounted.flatMap(({ config }) => config?.declared ?? []));
  return [...declared.filter((route) => seen.has(route)), ...[...seen].filter((route) => !declared.includes(route))];
}

/** `found` gets the components that it names. Crawlers take a missing `security` for an unknown one. */
function describeRoute({ method, url, answers, ...route }: Route, found: Components): Operation {
  const { id: operationId, summary, tag, description, path, query, body } = route;
  const schema = {
    operationId,
    summary,
    tags: [tag],
    description,
    querystring: query && describeMembers(query),
    params: path && describeMembers(path),
    body: body && describeSchema(body, found),
    security: [],
  };
  const own = mapValues(answers, (answer) => describeAnswer(answer, found));
  return { method, url, schema, responses: { ...UNREAD_RESPONSES, ...own } };
}

function describeContact(url: string): Json {
  const mailto = /^mailto:([^?]+)/.exec(url)?.[1];
  return mailto === undefined ? { url } : { email: mailto };
}

/** What is sold in USDC may stand under two: MPP asks for the plain entry alone. */
function mountsOf(endpoint: Endpoint<never>, options: OpenApiOptions): Mount[] {
  const { mpp = false, requirementOf, acceptsOf, mounted } = options;
  const isServed = (mount: Mount): boolean => mounted?.some(({ url }) => url === pathOn(endpoint, mount)) ?? true;
  const isPlain = (): boolean => acceptsOf?.(endpoint).includes(requirementOf(endpoint)) ?? true;
  const mounts = surfacesOf(endpoint).flatMap((surface): Mount[] =>
    surface === 'paid' && mpp && isPlain() ? ['paid', 'mpp'] : [surface],
  );
  return mounts.filter(isServed);
}

function describeOperation(endpoint: Endpoint<never>, mount: Mount, terms: Terms): Operation {
  const schema = {
    operationId: operationIdOf(endpoint.path, mount),
    summary: endpoint.label,
    tags: [mount],
    description: endpoint.summary,
    querystring: describeQuery(endpoint),
    security: [],
    ...describePayment(endpoint, mount, terms),
  };
  return { method: 'GET', url: pathOn(endpoint, mount), schema, responses: describeResponses(endpoint, mount) };
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

const QUOTED = 'Whole sats, quoted in the 402';
/** `amount` is null, because the 402 names it: the sats are quoted at the rate of the moment. */
const LIGHTNING_OFFERS: readonly Json[] = [
  { intent: 'charge', method: 'lightning', amount: null, currency: 'sat', description: QUOTED },
];

const SIGNATURE = 'PAYMENT-SIGNATURE';
const PAYLOAD = 'Base64 JSON of an x402 version 2 payment payload';

function x402({ scheme, network, asset, amount, payTo, maxTimeoutSeconds }: Requirement): Json {
  return { x402: { protocol: 'x402', version: 2, scheme, network, asset, amount, payTo, maxTimeoutSeconds } };
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
