import type { FastifyInstance, RouteHandlerMethod } from 'fastify';
import type { Registry } from 'prom-client';
import { z } from 'zod';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { API_CATALOG, API_CATALOG_LINK } from '../catalogue/paths.ts';
import type { Config } from '../config.ts';
import { NotFound, Unavailable } from '../errors.ts';
import { type Encodable, encodeWhenAsked, mountGet, sendEncoded } from '../http/answers.ts';
import {
  type AgentFacts,
  createAgentRegistration,
  createApiCatalog,
  createLlmsText,
  createPriceList,
  createSkill,
  createWellKnown,
  type RequirementOf,
} from '../http/documents.ts';
import { mayReadMetrics } from '../http/metrics.ts';
import {
  always,
  anyMembers,
  defineRoute,
  inJson,
  type Mounted,
  problem,
  type Route,
  said,
  saidOrNull,
  serve,
} from '../http/openapi/route.ts';
import { pricedOnly } from '../http/openapi/text.ts';
import { sendProblem } from '../http/problems.ts';
import type { Limited } from '../http/rate-limit.ts';
import { NO_SUCH_ROUTE } from '../http/route-advice.ts';
import { type Clock, nowSeconds } from '../lib/clock.ts';
import { sourceSchema } from '../lib/service.ts';
import { makeOnce } from '../lib/tasks.ts';
import type { Offer } from '../payment/checkout.ts';
import { FACILITATOR_ROUTES } from './facilitator.ts';
import { DESCRIBE } from './lightning.ts';
import { LIST, SEARCH, SUBMIT } from './market.ts';
import { LOOKUP } from './payments.ts';

// The documents that describe the catalogue, the routes of an operator's machines, and the order of all declared routes
// in OpenAPI.

export interface MetaDeps {
  readonly config: Pick<
    Config,
    | 'network'
    | 'seller'
    | 'publicOrigin'
    | 'rails'
    | 'lightning'
    | 'protocols'
    | 'web'
    | 'agents'
    | 'metricsToken'
    | 'trustedProxies'
  >;
  readonly clock: Clock;
  readonly listed: readonly Endpoint<never>[];
  readonly metrics: Registry;
  /** It comes from the payment module, so that documents state what a 402 asks for. */
  offerOf(endpoint: Endpoint<never>): Offer;
  readiness(): Promise<Readiness>;
}

const get = (url: `/${string}`, id: string, said: Pick<Route, 'summary' | 'description' | 'answers'>) =>
  defineRoute('GET', url, { id, tag: 'meta', ...said });

const PRICED_ROUTE = z.object({
  route: z.string().meta({ examples: ['GET /v1/paid/selftest/fail'] }),
  priceUsd: said('Decimal USD'),
  amount: said('The same in base units of the asset'),
  label: z.string(),
  summary: z.string(),
  freeSummary: saidOrNull('Path of the free route that summarises this one'),
  params: z.array(z.object({ name: z.string(), required: z.boolean(), description: z.string() })),
});

const PRICES = get('/v1/paid', 'priceList', {
  summary: 'Every priced route with its price and its parameters; free.',
  description: 'Prices in USDC. GET /v1/lightning has those of the routes that bitcoin alone buys.',
  answers: {
    200: inJson(
      z.object({
        scheme: z.string().nullable(),
        network: saidOrNull('CAIP-2'),
        networkName: said('The chain’s name for people'),
        playMoney: z.boolean().meta({ description: 'Whether its coins are worth nothing, as on a demo’s local chain' }),
        asset: saidOrNull('The USDC contract'),
        payTo: z.string().nullable(),
        currency: z.enum(['USD']),
        routes: z.array(PRICED_ROUTE),
        source: sourceSchema,
      }),
      'The price list',
    ),
  },
});

const WHOLE = get('/openapi.json', 'openapi', {
  summary: 'This document.',
  description: 'It describes what is mounted now, and changes when a way to pay is added or gone.',
  answers: { 200: inJson(anyMembers, 'OpenAPI 3.1') },
});

const PRICED = get('/openapi-priced.json', 'openapiPriced', {
  summary: 'The priced routes of this document alone, under 64 KiB, for crawlers.',
  description: 'The schemas of the answers are in /openapi.json.',
  answers: { 200: inJson(anyMembers, 'OpenAPI 3.1') },
});

const LLMS = get('/llms.txt', 'llmsText', {
  summary: 'What is sold, at which price and how to pay, in 4,000 characters for models.',
  description: 'Markdown in the form of llmstxt.org; also `x-guidance` of this document.',
  answers: { 200: { description: 'Markdown', type: 'text/plain', schema: z.string() } },
});

const SKILL = get('/SKILL.md', 'skill', {
  summary: 'The skill for agents: how to find, price, pay, retry and never pay twice, in 6,000 bytes.',
  description: 'Markdown in the form of agentskills.io, with the addresses of this service.',
  answers: { 200: { description: 'Markdown (agentskills.io)', type: 'text/markdown', schema: z.string() } },
});

const CATALOG = get(API_CATALOG, 'apiCatalog', {
  summary: 'The API catalog (RFC 9727): the APIs, and what describes them.',
  description: 'The landing page and every 402 lead here by a `Link` header.',
  answers: { 200: { description: 'A linkset (RFC 9264)', type: 'application/linkset+json', schema: anyMembers } },
});

const REGISTRATION = get('/.well-known/agent-registration.json', 'agentRegistration', {
  summary: 'The agent’s registration file (ERC-8004): its services, x402, where it is registered.',
  description: '`registrations` names the registries that list this service; it is empty where none does.',
  answers: { 200: inJson(anyMembers, 'ERC-8004’s registration-v1') },
});

const ITEM = z.object({
  resource: z.string(),
  type: z.enum(['http']),
  x402Version: always(2),
  accepts: z.array(anyMembers).meta({ description: 'As the 402 of the route has them' }),
  metadata: anyMembers.meta({ description: 'Name, price in USD, parameters and an example of the answer' }),
});

const MANIFEST = get('/.well-known/x402', 'wellKnown', {
  summary: 'The USDC routes with their terms, for crawlers; the same at /.well-known/x402.json.',
  description: 'The form follows drafts that are not final. Only the 402 of a route is binding.',
  answers: {
    200: inJson(
      z.object({
        x402Version: always(2),
        version: always(1).meta({ description: 'Of this document’s form' }),
        name: z.string(),
        resources: z.array(z.string()).meta({ description: 'The addresses alone' }),
        items: z.array(ITEM),
        documents: anyMembers.meta({ description: 'Where the rest is described' }),
      }),
      'The manifest',
    ),
  },
});

/**
 * Each document is made at its first request, because OpenAPI alone is a tenth of a start's work. Those that list the
 * ways to pay are made again when these have changed: a rail may be offered only some time after the start.
 */
export async function documentRoutes(app: FastifyInstance, deps: MetaDeps & Limited & Mounted): Promise<void> {
  deps.limits.free(app);
  const { listed: catalogue, clock, config, offerOf } = deps;
  const { network: chain, publicOrigin, protocols } = config;
  const requirementOf: RequirementOf = (endpoint) => offerOf(endpoint).requirement;
  const acceptsOf = (endpoint: Endpoint<never>) => offerOf(endpoint).accepts;
  const described = { catalogue, requirementOf, acceptsOf, chain, publicOrigin, mpp: protocols.mpp };
  const startedAt = nowSeconds(clock);
  const prices = keepWhile(deps, async () => encodeJson(createPriceList({ ...described, nowSeconds: startedAt })));
  mountDocument(app, PRICES, prices);
  const openApi = keepWhile(deps, async () => {
    const whole = await createDocument(deps);
    return { whole: encodeJson(whole), priced: encodeJson(pricedOnly(whole)) };
  });
  mountDocument(app, WHOLE, async () => (await openApi()).whole);
  mountDocument(app, PRICED, async () => (await openApi()).priced);
  const manifest = keepWhile(deps, async () => encodeJson(createWellKnown({ catalogue, acceptsOf, publicOrigin })));
  mountDocument(app, MANIFEST, manifest);
  mountGet(app, `${MANIFEST.url}.json`, sending(manifest));
  mountDocument(
    app,
    LLMS,
    makeOnce(async () => encodeText(createLlmsText(described), 'text/plain; charset=utf-8')),
  );
  mountForAgents(app, deps, { ...described, lightning: config.lightning.receiver !== null });
}

/** MCP's SDK is loaded for the version that it speaks when the registration is first asked for. */
function mountForAgents(app: FastifyInstance, { config }: MetaDeps, facts: AgentFacts): void {
  const { registrations, registryProof } = config.agents;
  mountDocument(
    app,
    SKILL,
    makeOnce(async () => encodeText(createSkill(facts), 'text/markdown; charset=utf-8')),
  );
  const catalog = sending(makeOnce(async () => encodeText(JSON.stringify(createApiCatalog(facts)), LINKSET)));
  serve(app, CATALOG, function sendCatalog(request, reply) {
    reply.header('link', API_CATALOG_LINK);
    return catalog.call(this, request, reply);
  });
  const registration = makeOnce(async () => {
    const { LATEST_PROTOCOL_VERSION: mcpVersion } = await import('@modelcontextprotocol/sdk/types.js');
    return encodeJson(createAgentRegistration(facts, registrations, mcpVersion));
  });
  mountDocument(app, REGISTRATION, registration);
  if (registryProof === null) return;
  // For the registry alone, so no document has it.
  const proof = encodeText(`${registryProof}\n`, 'text/plain; charset=utf-8');
  mountGet(
    app,
    '/.well-known/mcp-registry-auth',
    sending(() => proof),
  );
}

const LINKSET = 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"';

/** OpenAPI of what is mounted, now. */
export async function createDocument({ listed: catalogue, config, offerOf, mounted }: MetaDeps & Mounted) {
  const { createOpenApi } = await import('../http/openapi/openapi.ts');
  const { network: chain, publicOrigin, protocols, web } = config;
  return createOpenApi({
    catalogue,
    declared: DECLARED,
    mounted,
    requirementOf: (endpoint) => offerOf(endpoint).requirement,
    acceptsOf: (endpoint) => offerOf(endpoint).accepts,
    chain,
    publicOrigin,
    mpp: protocols.mpp,
    contactUrl: web.contactUrl,
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

function encodeText(text: string, type: string): Encodable {
  return encodeWhenAsked(Buffer.from(text), type);
}

function encodeJson(document: object): Encodable {
  return encodeText(JSON.stringify(document), 'application/json; charset=utf-8');
}

/** The documents change with a deployment only. */
const DOCUMENT_CACHE = 'public, max-age=60';

type DocumentNow = () => Encodable | Promise<Encodable>;

function mountDocument(app: FastifyInstance, route: Route, documentNow: DocumentNow): void {
  serve(app, route, sending(documentNow));
}

function sending(documentNow: DocumentNow): RouteHandlerMethod {
  return async (request, reply) => {
    sendEncoded(request, reply, await (await documentNow()).encoded(), DOCUMENT_CACHE);
    return reply;
  };
}

const LIVE = get('/livez', 'livez', {
  summary: 'Whether the process runs.',
  description: 'It asks neither the ledger nor a source, and has no rate limit.',
  answers: { 200: inJson(z.object({ status: z.enum(['ok']) }).partial(), 'It runs') },
});

/** Some checks have readings of their own. */
const CHECK = z.looseObject({ ok: z.boolean(), detail: said('What is wrong, in words').optional() });

const READY = get('/readyz', 'readyz', {
  summary: 'Whether the service can serve and sell now.',
  description: 'For load balancers; without a rate limit. One of several ways to pay may fail meanwhile.',
  answers: {
    200: inJson(z.object({ ready: z.boolean(), checks: z.record(z.string(), CHECK) }).partial(), 'Ready'),
    503: problem('Not ready, or stopping; `checks` says what is missing'),
  },
});

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

  serve(app, LIVE, (_request, reply) => reply.header('cache-control', 'no-store').send({ status: 'ok' }));
  serve(app, READY, async (request, reply) => {
    const { ready, failing, checks } = stopping ? STOPPING : await deps.readiness();
    if (ready) return reply.header('cache-control', 'no-store').send({ ready, checks });
    sendProblem(request, reply, new Unavailable('not_ready', `Not ready: ${failing.join(', ')}.`), { checks });
    return reply;
  });
  // Not for callers, so no document has it.
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

/** In the document's order. What else is mounted and declared comes after them. */
export const DECLARED: readonly Route[] = [
  ...[PRICES, DESCRIBE, LOOKUP, WHOLE, PRICED, LLMS, SKILL, MANIFEST, CATALOG, REGISTRATION],
  ...[LIVE, READY],
  ...[...FACILITATOR_ROUTES, SEARCH, LIST, SUBMIT],
];
