import Fastify, { type FastifyInstance, type RouteOptions } from 'fastify';
import type { Logger } from 'pino';
import type { Endpoint } from './catalogue/endpoint.ts';
import type { Config } from './config.ts';
import type { Discovery } from './discovery/discovery.ts';
import type { Market } from './discovery/market.ts';
import type { Facilitator } from './facilitator/facilitator.ts';
import { limitConnections } from './http/connections.ts';
import { createMethodRefusals, guardRequests } from './http/guard-requests.ts';
import { observeRequests } from './http/metrics.ts';
import { installErrorHandlers, type ProblemPage } from './http/problems.ts';
import { createRateLimit } from './http/rate-limit.ts';
import { createRouteAdvice } from './http/route-advice.ts';
import { serverOptions } from './http/server-options.ts';
import { presentsPayment } from './payment/http-auth.ts';
import { mountFacilitator } from './routes/facilitator.ts';
import { type FreeDeps, mountFree } from './routes/free.ts';
import { mountDiscovery, mountMarket } from './routes/market.ts';
import { type MetaDeps, mountDocuments, mountOperations } from './routes/meta.ts';
import { type Lookup, mountLookup, type ReceiptPage } from './routes/payments.ts';

/** All of it exists before the first route is mounted. */
export interface AppDeps<S> extends FreeDeps<S>, MetaDeps {
  readonly config: Config;
  readonly log: Logger;
  readonly listed: readonly Endpoint<S>[];
  readonly facilitator: Facilitator;
  readonly lookup: Lookup;
  readonly market: Market;
  readonly discovery: Pick<Discovery, 'search' | 'refresh'>;
  mountPriced(app: FastifyInstance): void;
  mountLightning?(app: FastifyInstance): void;
  mountPages?(app: FastifyInstance): void;
  /** Absent: every lookup is answered in JSON. */
  receiptPage?: ReceiptPage;
  /** Absent: every error is a problem document. */
  problemPage?: ProblemPage;
  mountTools?(app: FastifyInstance): void;
  /** Throws when a priced route, under any of its paths, has no gate. */
  checkGates(routes: readonly RouteOptions[]): void;
}

/** Mounts plugins and routes in the order in which they handle a request. Rejects when a priced route has no gate. */
export async function buildApp<S>(deps: AppDeps<S>): Promise<FastifyInstance> {
  const { config, log, metrics } = deps;
  const app = Fastify(serverOptions(config, log));
  const { connections: limits, trustedProxies } = config;
  limitConnections(app.server, { limits, trustedProxies, clock: deps.clock, log, metrics });
  const routes: RouteOptions[] = [];
  app.addHook('onRoute', (route) => {
    routes.push(route);
  });

  const observer = observeRequests(app, log, metrics);
  guardRequests(app, log, createMethodRefusals(app, observer.unmatched));
  const adviceOn = createRouteAdvice({
    catalogue: deps.listed,
    chainSegment: config.network.segment,
    isMppOn: config.protocols.mpp,
    routes,
  });
  installErrorHandlers(app, log, observer.unmatched, adviceOn, deps.problemPage);

  mountOperations(app, deps);
  await app.register(async (free) => {
    limit(free, deps, config.rateLimits.free);
    mountDocuments(free, deps);
    mountFree(free, deps);
    deps.mountLightning?.(free);
    mountLookup(free, deps.lookup, deps.receiptPage);
    mountDiscovery(free, deps.discovery);
    deps.mountPages?.(free);
    mountMarket(free, {
      market: deps.market,
      discovery: deps.discovery,
      clock: deps.clock,
      network: config.network.caip2,
      publicOrigin: config.publicOrigin,
    });
  });
  // It has its own limits.
  mountFacilitator(app, deps.facilitator);
  deps.mountTools?.(app);
  await app.register(async (priced) => {
    limit(priced, deps, config.rateLimits.priced);
    deps.mountPriced(priced);
  });

  await app.ready();
  deps.checkGates(routes);
  return app;
}

/** Limits a group before anything else runs, the 402 included. 0 is off and adds no hook. */
function limit(group: FastifyInstance, { clock }: { clock: MetaDeps['clock'] }, perMinute: number): void {
  if (perMinute > 0) group.addHook('onRequest', createRateLimit({ perMinute, clock, presentsPayment }));
}
