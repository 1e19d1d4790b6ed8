import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { Registry } from 'prom-client';
import type { Endpoint } from '../catalogue/endpoint.ts';
import type { Config } from '../config.ts';
import { NotFound, Unavailable } from '../errors.ts';
import { type Encodable, encodeWhenAsked, sendEncoded } from '../http/encodings.ts';
import { sendProblem } from '../http/errors.ts';
import { createLlmsText } from '../http/llms-text.ts';
import { refuseOtherMethods } from '../http/methods.ts';
import { mayReadMetrics } from '../http/metrics.ts';
import { createPriceList } from '../http/price-list.ts';
import type { RequirementOf } from '../http/requirement.ts';
import { createWellKnown } from '../http/well-known.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import type { Offer } from '../payment/offer.ts';

/** The documents change with a deployment only. */
const DOCUMENT_CACHE = 'public, max-age=60';
const JSON_TYPE = 'application/json; charset=utf-8';

/** The service's own state. A load balancer acts on `ready`. */
export interface Readiness {
  readonly ready: boolean;
  readonly checks: Record<string, { ok: boolean; detail?: string }>;
}

/** The dependencies of the routes about the service itself. */
export interface MetaDeps {
  readonly config: Pick<
    Config,
    'network' | 'seller' | 'publicOrigin' | 'rails' | 'web' | 'metricsToken' | 'trustedProxies'
  >;
  readonly clock: Clock;
  readonly catalogue: readonly Endpoint<never>[];
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
  const { catalogue, clock, config, offerOf } = deps;
  const { publicOrigin } = config;
  const { contactUrl } = config.web;
  const requirementOf: RequirementOf = (endpoint) => offerOf(endpoint).requirement;
  const acceptsOf = (endpoint: Endpoint<never>) => offerOf(endpoint).accepts;
  const described = { catalogue, requirementOf, acceptsOf, chain: config.network, publicOrigin };
  const startedAt = nowSeconds(clock);
  mountDocument(
    app,
    '/v1/paid',
    keepWhile(deps, () => createPriceList({ ...described, nowSeconds: startedAt })),
  );
  mountDocument(
    app,
    '/openapi.json',
    keepWhile(deps, async () => {
      const { createOpenApi } = await import('../http/openapi/openapi.ts');
      return createOpenApi({ ...described, contactUrl });
    }),
  );
  const manifest = keepWhile(deps, () => createWellKnown({ catalogue, acceptsOf, publicOrigin }));
  for (const url of ['/.well-known/x402', '/.well-known/x402.json']) mountDocument(app, url, manifest);
  const text = encodeWhenAsked(Buffer.from(createLlmsText(described)), 'text/plain; charset=utf-8');
  mountDocument(app, '/llms.txt', () => text);
}

/**
 * Returns the document under the offers of now. An offer that stays the same is the same object. A document that could not be made is tried again at the
 * next request.
 */
function keepWhile({ catalogue, offerOf }: MetaDeps, make: () => object | Promise<object>): () => Promise<Encodable> {
  const sample = catalogue.find(({ price }) => price);
  const encoded = async () => encodeWhenAsked(Buffer.from(JSON.stringify(await make())), JSON_TYPE);
  let kept: { readonly offer: Offer | undefined; readonly document: Promise<Encodable> } | null = null;
  return () => {
    const offer = sample && offerOf(sample);
    if (kept && kept.offer === offer) return kept.document;
    const made = { offer, document: encoded() };
    kept = made;
    made.document.catch(() => {
      if (kept === made) kept = null;
    });
    return made.document;
  };
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
  refuseOtherMethods(app, url, ['GET', 'HEAD']);
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
      const { ready, checks } = stopping ? STOPPING : await deps.readiness();
      if (ready) return reply.header('cache-control', 'no-store').send({ ready, checks });
      sendProblem(request, reply, notReady(checks), { checks });
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
  for (const url of ['/livez', '/readyz', '/metrics']) refuseOtherMethods(app, url, ['GET', 'HEAD']);
}

const STOPPING: Readiness = { ready: false, checks: { process: { ok: false, detail: 'stopping' } } };
/** A caller without the token gets the answer of an unknown route, so that nothing hints at the metrics route. */
const NO_METRICS = new NotFound('There is no such route; /openapi.json lists those that are.', 'no_such_route');

function notReady(checks: Readiness['checks']): Unavailable {
  const failing = Object.keys(checks).filter((name) => !checks[name]?.ok);
  return new Unavailable('not_ready', `Not ready: ${failing.join(', ')}.`);
}
