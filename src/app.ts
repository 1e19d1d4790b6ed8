import Fastify, { type FastifyInstance, type RouteOptions } from 'fastify';
import type { Logger } from 'pino';
import type { Endpoint } from './catalogue/endpoint.ts';
import type { Config } from './config.ts';
import type { Facilitator } from './facilitator/facilitator.ts';
import { limitConnections } from './http/connections.ts';
import { createMethodRefusals, guardRequests } from './http/guard-requests.ts';
import { observeRequests } from './http/metrics.ts';
import type { Mounted } from './http/openapi/route.ts';
import { installErrorHandlers, type ProblemPage } from './http/problems.ts';
import { createGroupLimit, type Limited } from './http/rate-limit.ts';
import { createRouteAdvice } from './http/route-advice.ts';
import { serverOptions } from './http/server-options.ts';
import { type McpDeps, toolRoutes } from './mcp/mount.ts';
import type { PagesDeps } from './pages/page-parts.ts';
import { presentsPayment } from './payment/http-auth.ts';
import { facilitatorRoutes } from './routes/facilitator.ts';
import { type FreeDeps, freeRoutes } from './routes/free.ts';
import { lightningRoutes } from './routes/lightning.ts';
import { type MarketDeps, marketRoutes } from './routes/market.ts';
import { documentRoutes, type MetaDeps, operationRoutes } from './routes/meta.ts';
import { pageRoutes } from './routes/pages.ts';
import { checkGates, mppRoutes, paidRoutes, type Sold } from './routes/paid.ts';
import { type Lookups, lookupRoutes } from './routes/payments.ts';

// The HTTP application: what every request passes, then one plugin for each kind of route.

/** All of it exists before the first route is mounted. */
export interface AppDeps<S> extends FreeDeps<S>, Sold<S>, MarketDeps, Lookups, MetaDeps {
  readonly config: Config;
  readonly log: Logger;
  readonly listed: readonly Endpoint<S>[];
  readonly facilitator: Facilitator;
  readonly tools?: McpDeps<S>;
  readonly pages?: PagesDeps<S>;
  /** Absent: every error is a problem document. */
  problemPage?: ProblemPage;
  /** Routes of a test. */
  moreRoutes?(app: FastifyInstance, deps: Limited & Mounted): Promise<void>;
}

/** Registers every plugin. Rejects when a priced route has no gate. */
export async function buildApp<S>(deps: AppDeps<S>): Promise<FastifyInstance> {
  const { config, log, metrics, clock } = deps;
  const app = Fastify(serverOptions(config, log));
  const { connections: limits, trustedProxies } = config;
  limitConnections(app.server, { clock, log }, limits, trustedProxies, metrics);
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

  const limitOf = (perMinute: number) => createGroupLimit({ perMinute, clock, presentsPayment });
  const groups = { free: limitOf(config.rateLimits.free), priced: limitOf(config.rateLimits.priced) };
  const given = { ...deps, mounted: routes, limits: groups };
  app.register(freeRoutes<S>, given);
  app.register(paidRoutes<S>, given);
  app.register(lightningRoutes<S>, given);
  app.register(facilitatorRoutes, given);
  app.register(mppRoutes<S>, given);
  app.register(marketRoutes, given);
  app.register(toolRoutes<S>, given);
  app.register(pageRoutes<S>, given);
  app.register(lookupRoutes, given);
  app.register(documentRoutes, given);
  app.register(operationRoutes, given);
  if (deps.moreRoutes) app.register(deps.moreRoutes, given);

  await app.ready();
  for (const sold of [deps.paid, deps.lightning, deps.mpp]) if (sold) checkGates(sold, routes);
  return app;
}
