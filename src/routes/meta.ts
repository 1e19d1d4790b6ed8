import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Registry } from 'prom-client';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Config } from '../config.ts';
import { NotFound, Unavailable } from '../errors.ts';
import { type Encodable, encodeWhenAsked, sendEncoded } from '../http/encodings.ts';
import { sendProblem } from '../http/errors.ts';
import { createLlmsText } from '../http/llms-text.ts';
import { mayReadMetrics } from '../http/metrics.ts';
import { DISCOVERY_OPERATIONS, ENTRY } from '../http/openapi/openapi-discovery.ts';
import { FACILITATOR_OPERATIONS } from '../http/openapi/openapi-facilitator.ts';
import { LIGHTNING_CHALLENGE } from '../http/openapi/openapi-lightning.ts';
import { LISTING, marketOperations } from '../http/openapi/openapi-market.ts';
import { MCP_OPERATIONS } from '../http/openapi/openapi-mcp.ts';
import { META_OPERATIONS } from '../http/openapi/openapi-meta.ts';
import { pricedOnly } from '../http/openapi/openapi-priced.ts';
import type { Declared } from '../http/openapi/openapi-shapes.ts';
import { createPriceList } from '../http/price-list.ts';
import type { RequirementOf } from '../http/requirement.ts';
import { NO_SUCH_ROUTE } from '../http/route-advice.ts';
import { createWellKnown } from '../http/well-known.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import type { Offer } from '../payment/checkout.ts';

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
export interface Readiness {
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
