import type { FastifyInstance } from 'fastify';
import type { Registry } from 'prom-client';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Config } from '../config.ts';
import { NotFound, Unavailable } from '../errors.ts';
import { type Encodable, encodeWhenAsked, mountGet, sendEncoded } from '../http/answers.ts';
import { createLlmsText, createPriceList, createWellKnown, type RequirementOf } from '../http/documents.ts';
import { mayReadMetrics } from '../http/metrics.ts';
import {
  anyObject,
  type Declared,
  type Json,
  json,
  type Operation,
  object,
  orNull,
  problemAnswer,
  reference,
  text,
} from '../http/openapi/route.ts';
import { pricedOnly } from '../http/openapi/text.ts';
import { sendProblem } from '../http/problems.ts';
import type { Limited } from '../http/rate-limit.ts';
import { NO_SUCH_ROUTE } from '../http/route-advice.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import type { Offer } from '../payment/checkout.ts';
import { FACILITATOR_ROUTES } from './facilitator.ts';
import { LIGHTNING_CHALLENGE, LIGHTNING_OPERATION } from './lightning.ts';
import { LIST, SEARCH, SUBMIT } from './market.ts';
import { LOOKUP_OPERATION } from './payments.ts';

// The documents that describe the catalogue, the routes of an operator's machines, and `DECLARED`: what OpenAPI says of
// these and all other routes that are no catalogue entry.

export interface MetaDeps {
  readonly config: Pick<
    Config,
    'network' | 'seller' | 'publicOrigin' | 'rails' | 'protocols' | 'web' | 'metricsToken' | 'trustedProxies'
  >;
  readonly clock: Clock;
  readonly listed: readonly Endpoint<never>[];
  readonly metrics: Registry;
  /** It comes from the payment module, so that documents state what a 402 asks for. */
  offerOf(endpoint: Endpoint<never>): Offer;
  readiness(): Promise<Readiness>;
}

/**
 * Each document is made at its first request, because OpenAPI alone is a tenth of a start's work. Those that list the
 * ways to pay are made again when these have changed: a rail may be offered only some time after the start.
 */
export async function documentRoutes(app: FastifyInstance, deps: MetaDeps & Limited): Promise<void> {
  deps.limits.free(app);
  const { listed: catalogue, clock, config, offerOf } = deps;
  const { network: chain, publicOrigin, protocols, web } = config;
  const requirementOf: RequirementOf = (endpoint) => offerOf(endpoint).requirement;
  const acceptsOf = (endpoint: Endpoint<never>) => offerOf(endpoint).accepts;
  const terms = { requirementOf, acceptsOf, mpp: protocols.mpp };
  const described = { ...terms, catalogue, declared: DECLARED, chain, publicOrigin };
  const startedAt = nowSeconds(clock);
  const prices = keepWhile(deps, async () => encodeJson(createPriceList({ ...described, nowSeconds: startedAt })));
  mountDocument(app, '/v1/paid', prices);
  const openApi = keepWhile(deps, async () => {
    const { createOpenApi } = await import('../http/openapi/openapi.ts');
    const whole = await createOpenApi({ ...described, contactUrl: web.contactUrl });
    return { whole: encodeJson(whole), priced: encodeJson(pricedOnly(whole)) };
  });
  mountDocument(app, '/openapi.json', async () => (await openApi()).whole);
  mountDocument(app, '/openapi-priced.json', async () => (await openApi()).priced);
  const manifest = keepWhile(deps, async () => encodeJson(createWellKnown({ catalogue, acceptsOf, publicOrigin })));
  for (const url of ['/.well-known/x402', '/.well-known/x402.json']) mountDocument(app, url, manifest);
  let llms: Encodable | null = null;
  mountDocument(app, '/llms.txt', () => {
    llms ??= encodeWhenAsked(Buffer.from(createLlmsText(described)), 'text/plain; charset=utf-8');
    return llms;
  });
}

/** Keeps it while the offers stay the same objects. What could not be made is tried at the next request. */
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
  return encodeWhenAsked(Buffer.from(JSON.stringify(document)), 'application/json; charset=utf-8');
}

/** The documents change with a deployment only. */
const DOCUMENT_CACHE = 'public, max-age=60';

function mountDocument(app: FastifyInstance, url: string, documentNow: () => Encodable | Promise<Encodable>): void {
  mountGet(app, url, async (request, reply) => {
    sendEncoded(request, reply, await (await documentNow()).encoded(), DOCUMENT_CACHE);
    return reply;
  });
}

const flag = { type: 'boolean' };

const PRICED_ROUTE = object({
  route: { ...text, examples: ['GET /v1/paid/selftest/fail'] },
  priceUsd: { ...text, description: 'Decimal USD' },
  amount: { ...text, description: 'The same in base units of the asset' },
  label: text,
  summary: text,
  freeSummary: orNull('string', 'Path of the free route that summarises this one'),
  params: { type: 'array', items: object({ name: text, required: flag, description: text }) },
});

const PRICE_LIST = object({
  scheme: { type: ['string', 'null'] },
  network: orNull('string', 'CAIP-2'),
  networkName: { ...text, description: 'The chain’s name for people' },
  playMoney: { ...flag, description: 'Whether its coins are worth nothing, as on a demo’s local chain' },
  asset: orNull('string', 'The USDC contract'),
  payTo: { type: ['string', 'null'] },
  currency: { ...text, enum: ['USD'] },
  routes: { type: 'array', items: PRICED_ROUTE },
  source: reference('schemas', 'Source'),
});

const WELL_KNOWN = object({
  x402Version: { type: 'integer', enum: [2] },
  version: { type: 'integer', enum: [1], description: 'Of this document’s form' },
  name: text,
  resources: { type: 'array', items: text, description: 'The addresses alone' },
  items: {
    type: 'array',
    items: object({
      resource: text,
      type: { ...text, enum: ['http'] },
      x402Version: { type: 'integer', enum: [2] },
      accepts: { type: 'array', items: anyObject, description: 'As the 402 of the route has them' },
      metadata: { ...anyObject, description: 'Name, price in USD, parameters and an example of the answer' },
    }),
  },
  documents: { ...anyObject, description: 'Where the rest is described' },
});

const get = (url: string, schema: Json): Operation => ({ method: 'GET', url, schema: { ...schema, tags: ['meta'] } });

const PRICE_LIST_OPERATION = get('/v1/paid', {
  operationId: 'priceList',
  summary: 'Every priced route with its price and its parameters; free.',
  response: { 200: json(PRICE_LIST, 'The price list') },
});

const DOCUMENT_OPERATIONS = [
  get('/openapi.json', {
    operationId: 'openapi',
    summary: 'This document.',
    response: { 200: json(anyObject, 'OpenAPI 3.1') },
  }),
  get('/openapi-priced.json', {
    operationId: 'openapiPriced',
    summary: 'The priced routes of this document alone, under 64 KiB, for crawlers.',
    response: { 200: json(anyObject, 'OpenAPI 3.1') },
  }),
  get('/llms.txt', {
    operationId: 'llmsText',
    summary: 'What is sold, at which price and how to pay, in 4,000 characters for models.',
    response: { 200: { description: 'Markdown', content: { 'text/plain': { schema: text } } } },
  }),
  get('/.well-known/x402', {
    operationId: 'wellKnown',
    summary: 'The USDC routes with their terms, for crawlers; the same at /.well-known/x402.json.',
    description: 'The form follows drafts that are not final. Only the 402 of a route is binding.',
    response: { 200: json(WELL_KNOWN, 'The manifest') },
  }),
];

/** The service's own state. A load balancer acts on `ready`. */
interface Readiness {
  readonly ready: boolean;
  /** The checks for which it is not ready. Another check may fail too, such as that of one of several ways to pay. */
  readonly failing: readonly string[];
  readonly checks: Record<string, { ok: boolean; detail?: string }>;
}

/** They have no rate limit: a flood would take the instance out of rotation. */
export async function operationRoutes(app: FastifyInstance, deps: MetaDeps): Promise<void> {
  const { metrics, config } = deps;
  const access = { token: config.metricsToken, hasProxy: config.trustedProxies.length > 0 };
  let stopping = false;
  app.addHook('preClose', (done) => {
    stopping = true;
    done();
  });

  mountGet(app, '/livez', (_request, reply) => reply.header('cache-control', 'no-store').send({ status: 'ok' }));
  mountGet(app, '/readyz', async (request, reply) => {
    const { ready, failing, checks } = stopping ? STOPPING : await deps.readiness();
    if (ready) return reply.header('cache-control', 'no-store').send({ ready, checks });
    sendProblem(request, reply, new Unavailable('not_ready', `Not ready: ${failing.join(', ')}.`), { checks });
    return reply;
  });
  mountGet(app, '/metrics', async (request, reply) => {
    if (!mayReadMetrics(request, access)) throw NO_METRICS;
    return reply
      .header('cache-control', 'no-store')
      .header('content-type', metrics.contentType)
      .send(await metrics.metrics());
  });
}

const STOPPING: Readiness = {
  ready: false,
  failing: ['process'],
  checks: { process: { ok: false, detail: 'stopping' } },
};
/** Who may not read the metrics gets the problem of an unknown route. */
const NO_METRICS = new NotFound(NO_SUCH_ROUTE, 'no_such_route');

const CHECKS = {
  type: 'object',
  additionalProperties: {
    ...object({ ok: flag, detail: { ...text, description: 'What is wrong, in words' } }, ['ok']),
    // Some checks have readings of their own.
    additionalProperties: true,
  },
};

/** `/metrics` is not for callers, and stands in no document. */
const STATE_OPERATIONS = [
  get('/livez', {
    operationId: 'livez',
    summary: 'Whether the process runs.',
    response: { 200: json({ type: 'object', properties: { status: { ...text, enum: ['ok'] } } }, 'It runs') },
  }),
  get('/readyz', {
    operationId: 'readyz',
    summary: 'Whether the service can serve and sell now.',
    response: {
      200: json({ type: 'object', properties: { ready: flag, checks: CHECKS } }, 'Ready'),
      503: problemAnswer('Not ready, or stopping; `checks` says what is missing'),
    },
  }),
];

/** MCP defines the content of its messages. */
const mcp = (url: string, operationId: string, summary: string): Operation => ({
  method: 'POST',
  url,
  schema: {
    operationId,
    summary,
    description:
      'A `paid_…` tool without payment returns `isError`, a sentence with the price, and x402\u2019s ' +
      'PaymentRequired; repeat the call with the payload in `_meta["x402/payment"]`, the receipt is in ' +
      '`_meta["x402/payment-response"]`.',
    querystring: {
      type: 'object',
      properties: { schemas: { ...text, enum: ['full'], description: 'Lists the schemas of the answers too' } },
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
    tags: ['meta'],
  },
});

export const DECLARED: Declared = {
  operations: [
    PRICE_LIST_OPERATION,
    LIGHTNING_OPERATION,
    LOOKUP_OPERATION,
    ...DOCUMENT_OPERATIONS,
    ...STATE_OPERATIONS,
    ...FACILITATOR_ROUTES,
    SEARCH,
    LIST,
    SUBMIT,
    mcp('/mcp', 'mcp', 'Every route as a tool, over MCP (streamable HTTP, stateless); priced ones in USDC.'),
    mcp(
      '/mcp/lightning',
      'mcpLightning',
      'The same, with the tools that bitcoin buys: an unpaid call is offered an invoice.',
    ),
  ],
  schemas: { LightningChallenge: LIGHTNING_CHALLENGE },
};
