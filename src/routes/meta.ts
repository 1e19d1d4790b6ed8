import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Registry } from 'prom-client';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Config } from '../config.ts';
import { NotFound, Unavailable } from '../errors.ts';
import { type Encodable, encodeWhenAsked, sendEncoded } from '../http/answers.ts';
import { createLlmsText, createPriceList, createWellKnown, type RequirementOf } from '../http/documents.ts';
import { mayReadMetrics } from '../http/metrics.ts';
import { anyObject, type Declared, type Json, json, problemAnswer, reference } from '../http/openapi/route.ts';
import { pricedOnly } from '../http/openapi/text.ts';
import { sendProblem } from '../http/problems.ts';
import { NO_SUCH_ROUTE } from '../http/route-advice.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import type { Offer } from '../payment/checkout.ts';
import { FACILITATOR_OPERATIONS } from './facilitator.ts';
import { LIGHTNING_CHALLENGE, LIGHTNING_DESCRIPTOR } from './lightning.ts';
import { DISCOVERY_OPERATIONS, ENTRY, LISTING, marketOperations } from './market.ts';
import { LOOKUP_OPERATION } from './payments.ts';

const CHECKS = {
  type: 'object',
  additionalProperties: {
    type: 'object',
    properties: { ok: { type: 'boolean' }, detail: { type: 'string', description: 'What is wrong, in words' } },
    required: ['ok'],
    // Some checks have readings of their own.
    additionalProperties: true,
  },
};

const PRICED_ROUTE = {
  type: 'object',
  properties: {
    route: { type: 'string', examples: ['GET /v1/paid/selftest/fail'] },
    priceUsd: { type: 'string', description: 'Decimal USD' },
    amount: { type: 'string', description: 'The same in base units of the asset' },
    label: { type: 'string' },
    summary: { type: 'string' },
    freeSummary: { type: ['string', 'null'], description: 'Path of the free route that summarises this one' },
    params: {
      type: 'array',
      items: {
        type: 'object',
        properties: { name: { type: 'string' }, required: { type: 'boolean' }, description: { type: 'string' } },
        required: ['name', 'required', 'description'],
      },
    },
  },
  required: ['route', 'priceUsd', 'amount', 'label', 'summary', 'freeSummary', 'params'],
};

const PRICE_LIST = {
  type: 'object',
  properties: {
    scheme: { type: ['string', 'null'] },
    network: { type: ['string', 'null'], description: 'CAIP-2' },
    networkName: { type: 'string', description: 'The chain’s name for people' },
    playMoney: { type: 'boolean', description: 'Whether its coins are worth nothing, as on a demo’s local chain' },
    asset: { type: ['string', 'null'], description: 'The USDC contract' },
    payTo: { type: ['string', 'null'] },
    currency: { type: 'string', enum: ['USD'] },
    routes: { type: 'array', items: PRICED_ROUTE },
    source: reference('schemas', 'Source'),
  },
  required: [...['scheme', 'network', 'networkName', 'playMoney', 'asset', 'payTo', 'currency', 'routes', 'source']],
};

const WELL_KNOWN = {
  type: 'object',
  properties: {
    x402Version: { type: 'integer', enum: [2] },
    version: { type: 'integer', enum: [1], description: 'Of this document’s form' },
    name: { type: 'string' },
    resources: { type: 'array', items: { type: 'string' }, description: 'The addresses alone' },
    items: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          resource: { type: 'string' },
          type: { type: 'string', enum: ['http'] },
          x402Version: { type: 'integer', enum: [2] },
          accepts: { type: 'array', items: anyObject, description: 'As the 402 of the route has them' },
          metadata: { ...anyObject, description: 'Name, price in USD, parameters and an example of the answer' },
        },
        required: ['resource', 'type', 'x402Version', 'accepts', 'metadata'],
      },
    },
    documents: { ...anyObject, description: 'Where the rest is described' },
  },
  required: ['x402Version', 'version', 'name', 'resources', 'items', 'documents'],
};

const NOT_READY = problemAnswer('Not ready, or stopping; `checks` says what is missing');

/** The routes about the service itself, in the form in which Fastify's swagger plugin takes a route's schema. */
const META_OPERATIONS: readonly { readonly url: string; readonly schema: Json }[] = [
  {
    url: '/v1/paid',
    schema: {
      operationId: 'priceList',
      summary: 'Every priced route with its price and its parameters; free.',
      response: { 200: json(PRICE_LIST, 'The price list') },
    },
  },
  {
    url: '/v1/lightning',
    schema: {
      operationId: 'lightningDescriptor',
      summary: 'How the routes are sold over Lightning: node, rate and its age, prices; free.',
      response: { 200: json(LIGHTNING_DESCRIPTOR, 'The descriptor') },
    },
  },
  LOOKUP_OPERATION,
  {
    url: '/openapi.json',
    schema: {
      operationId: 'openapi',
      summary: 'This document.',
      response: { 200: json(anyObject, 'OpenAPI 3.1') },
    },
  },
  {
    url: '/openapi-priced.json',
    schema: {
      operationId: 'openapiPriced',
      summary: 'The priced routes of this document alone, under 64 KiB, for crawlers.',
      response: { 200: json(anyObject, 'OpenAPI 3.1') },
    },
  },
  {
    url: '/llms.txt',
    schema: {
      operationId: 'llmsText',
      summary: 'What is sold, at which price and how to pay, in 4,000 characters for models.',
      response: { 200: { description: 'Markdown', content: { 'text/plain': { schema: { type: 'string' } } } } },
    },
  },
  {
    url: '/.well-known/x402',
    schema: {
      operationId: 'wellKnown',
      summary: 'The USDC routes with their terms, for crawlers; the same at /.well-known/x402.json.',
      description: 'The form follows drafts that are not final. Only the 402 of a route is binding.',
      response: { 200: json(WELL_KNOWN, 'The manifest') },
    },
  },
  {
    url: '/livez',
    schema: {
      operationId: 'livez',
      summary: 'Whether the process runs.',
      response: { 200: json({ type: 'object', properties: { status: { type: 'string', enum: ['ok'] } } }, 'It runs') },
    },
  },
  {
    url: '/readyz',
    schema: {
      operationId: 'readyz',
      summary: 'Whether the service can serve and sell now.',
      response: {
        200: json({ type: 'object', properties: { ready: { type: 'boolean' }, checks: CHECKS } }, 'Ready'),
        503: NOT_READY,
      },
    },
  },
];

/** The addresses of the tools server. MCP defines the content of its messages. */
const MCP_OPERATIONS: readonly { readonly url: string; readonly schema: Json }[] = [
  {
    url: '/mcp',
    schema: mcp('mcp', 'Every route as a tool, over MCP (streamable HTTP, stateless); priced ones in USDC.'),
  },
  {
    url: '/mcp/lightning',
    schema: mcp('mcpLightning', 'The same, with the tools that bitcoin buys: an unpaid call is offered an invoice.'),
  },
];

function mcp(operationId: string, summary: string): Json {
  return {
    operationId,
    summary,
    description:
      'A `paid_…` tool without payment returns `isError`, a sentence with the price, and x402\u2019s PaymentRequired; repeat the call with the payload in `_meta["x402/payment"]`, the receipt is in `_meta["x402/payment-response"]`.',
    querystring: {
      type: 'object',
      properties: {
        schemas: { type: 'string', enum: ['full'], description: 'Lists the schemas of the answers too' },
      },
    },
    body: {
      ...anyObject,
      description: 'One JSON-RPC 2.0 message',
      examples: [{ jsonrpc: '2.0', id: 1, method: 'tools/list' }],
    },
    response: {
      200: json(anyObject, 'One JSON-RPC 2.0 message'),
      202: { description: 'A notification was taken' },
      400: json(anyObject, 'No JSON-RPC message, or several'),
      429: json(anyObject, 'Too many messages'),
    },
  };
}

/** The documents change with a deployment only. */
const DOCUMENT_CACHE = 'public, max-age=60';
const JSON_TYPE = 'application/json; charset=utf-8';

/** What OpenAPI says of every route that is no catalogue entry. */
export const DECLARED: Declared = {
  operations: [
    ...META_OPERATIONS.map(({ url, schema }) => ({
      method: 'GET' as const,
      url,
      schema: { ...schema, tags: ['meta'] },
    })),
    ...FACILITATOR_OPERATIONS.map((one) => ({ ...one, schema: { ...one.schema, tags: ['facilitator'] } })),
    ...DISCOVERY_OPERATIONS,
    ...marketOperations().map((one) => ({ ...one, schema: { tags: ['market'], ...one.schema } })),
    ...MCP_OPERATIONS.map(({ url, schema }) => ({
      method: 'POST' as const,
      url,
      schema: { ...schema, tags: ['meta'] },
    })),
  ],
  schemas: { LightningChallenge: LIGHTNING_CHALLENGE, Entry: ENTRY, Listing: LISTING },
};

/** The service's own state. A load balancer acts on `ready`. */
interface Readiness {
  readonly ready: boolean;
  /** The checks for which it is not ready. Another check may fail too, such as that of one of several ways to pay. */
  readonly failing: readonly string[];
  readonly checks: Record<string, { ok: boolean; detail?: string }>;
}

/** The dependencies of the routes about the service itself. */
export interface MetaDeps {
  readonly config: Pick<
    Config,
    'network' | 'seller' | 'publicOrigin' | 'rails' | 'protocols' | 'web' | 'metricsToken' | 'trustedProxies'
  >;
  readonly clock: Clock;
  readonly listed: readonly Endpoint<never>[];
  readonly metrics: Registry;
  /** The offer of each priced endpoint. It comes from the payment module, so that documents state what a 402 asks for. */
  offerOf(endpoint: Endpoint<never>): Offer;
  readiness(): Promise<Readiness>;
}

/**
 * Mounts the documents that describe the catalogue. They are made and compressed at the first request, because OpenAPI alone is a tenth of a start's
 * work. Those that list the ways to pay are made again when these have changed: a rail may be offered only some time after the start.
 */
export function mountDocuments(app: FastifyInstance, deps: MetaDeps): void {
  const { listed: catalogue, clock, config, offerOf } = deps;
  const { publicOrigin } = config;
  const { contactUrl } = config.web;
  const requirementOf: RequirementOf = (endpoint) => offerOf(endpoint).requirement;
  const acceptsOf = (endpoint: Endpoint<never>) => offerOf(endpoint).accepts;
  const { mpp } = config.protocols;
  const described = {
    catalogue,
    declared: DECLARED,
    requirementOf,
    acceptsOf,
    chain: config.network,
    publicOrigin,
    mpp,
  };
  const startedAt = nowSeconds(clock);
  const prices = keepWhile(deps, async () => encodeJson(createPriceList({ ...described, nowSeconds: startedAt })));
  mountDocument(app, '/v1/paid', prices);
  const openApi = keepWhile(deps, async () => {
    const { createOpenApi } = await import('../http/openapi/openapi.ts');
    const whole = await createOpenApi({ ...described, contactUrl });
    return { whole: encodeJson(whole), priced: encodeJson(pricedOnly(whole)) };
  });
  mountDocument(app, '/openapi.json', async () => (await openApi()).whole);
  mountDocument(app, '/openapi-priced.json', async () => (await openApi()).priced);
  const manifest = keepWhile(deps, async () => encodeJson(createWellKnown({ catalogue, acceptsOf, publicOrigin })));
  for (const url of ['/.well-known/x402', '/.well-known/x402.json']) mountDocument(app, url, manifest);
  let text: Encodable | null = null;
  mountDocument(app, '/llms.txt', () => {
    text ??= encodeWhenAsked(Buffer.from(createLlmsText(described)), 'text/plain; charset=utf-8');
    return text;
  });
}

/**
 * Returns what was made under the offers of now. An offer that stays the same is the same object. What could not be made is tried again at the next
 * request.
 */
function keepWhile<T>({ listed, offerOf }: MetaDeps, make: () => Promise<T>): () => Promise<T> {
  const sample = listed.find(({ price }) => price);
  let kept: { readonly offer: Offer | undefined; readonly made: Promise<T> } | null = null;
  return () => {
    const offer = sample && offerOf(sample);
    if (kept && kept.offer === offer) return kept.made;
    const now = { offer, made: make() };
    kept = now;
    now.made.catch(() => {
      if (kept === now) kept = null;
    });
    return now.made;
  };
}

function encodeJson(document: object): Encodable {
  return encodeWhenAsked(Buffer.from(JSON.stringify(document)), JSON_TYPE);
}

function mountDocument(app: FastifyInstance, url: string, documentNow: () => Encodable | Promise<Encodable>): void {
  app.route({
    method: ['GET', 'HEAD'],
    url,
    handler: async (request, reply) => {
      sendEncoded(request, reply, await (await documentNow()).encoded(), DOCUMENT_CACHE);
      return reply;
    },
  });
}

/**
 * Mounts the routes for an operator's machines: liveness, readiness, metrics. They have no rate limit; otherwise a flood would take the instance out
 * of rotation.
 */
export function mountOperations(app: FastifyInstance, deps: MetaDeps): void {
  const { metrics, config } = deps;
  const access = { token: config.metricsToken, hasProxy: config.trustedProxies.length > 0 };
  let stopping = false;
  app.addHook('preClose', (done) => {
    stopping = true;
    done();
  });

  app.route({
    method: ['GET', 'HEAD'],
    url: '/livez',
    handler: (_request, reply) => reply.header('cache-control', 'no-store').send({ status: 'ok' }),
  });
  app.route({
    method: ['GET', 'HEAD'],
    url: '/readyz',
    handler: async (request, reply) => {
      const { ready, failing, checks } = stopping ? STOPPING : await deps.readiness();
      if (ready) return reply.header('cache-control', 'no-store').send({ ready, checks });
      sendProblem(request, reply, notReady(failing), { checks });
      return reply;
    },
  });
  app.route({
    method: ['GET', 'HEAD'],
    url: '/metrics',
    handler: async (request, reply) => {
      if (!mayReadMetrics(request as FastifyRequest, access)) throw NO_METRICS;
      return reply
        .header('cache-control', 'no-store')
        .header('content-type', metrics.contentType)
        .send(await metrics.metrics());
    },
  });
}

const STOPPING: Readiness = {
  ready: false,
  failing: ['process'],
  checks: { process: { ok: false, detail: 'stopping' } },
};
/** Who may not read the metrics gets the problem of an unknown route. */
const NO_METRICS = new NotFound(NO_SUCH_ROUTE, 'no_such_route');

function notReady(failing: readonly string[]): Unavailable {
  return new Unavailable('not_ready', `Not ready: ${failing.join(', ')}.`);
}
