import type { FastifyInstance, FastifyReply, FastifyRequest, onSendHookHandler } from 'fastify';
import type { Logger } from 'pino';
import type { Registry } from 'prom-client';
import { publishCounts } from './metrics.ts';
import { pathOf } from './problem.ts';
import { createRouteCounts, type RouteCounts } from './request-counts.ts';

/** Label of answers that belong to no route. */
const UNMATCHED = 'unmatched';

/**
 * Counts and logs every answer of all routes mounted afterwards, by route pattern, without queries or headers.
 * It uses each route's last onSend hook. An onResponse hook would make Fastify add two listeners to every response, which costs 8 % of a bare request.
 * A settled sale and every 5xx are logged at `info`, the rest at `debug`.
 */
export function observeRequests(app: FastifyInstance, log: Logger, registry: Registry) {
  const routes = new Map<string, RouteCounts>();
  publishCounts(registry, routes);

  function countsOf(route: string): RouteCounts {
    const counts = routes.get(route) ?? createRouteCounts();
    routes.set(route, counts);
    return counts;
  }

  function logAnswer(
    request: FastifyRequest,
    route: string,
    status: number,
    milliseconds: number,
    sold: boolean,
  ): void {
    if (!sold && status < 500 && !log.isLevelEnabled('debug')) return;
    const { method, url = '' } = request.raw;
    const line = {
      requestId: request.id,
      method,
      route,
      path: pathOf(url),
      status,
      milliseconds: Math.round(milliseconds),
    };
    if (sold || status >= 500) log.info(line, sold ? 'sold' : 'failed');
    else log.debug(line, 'answered');
  }

  function observer(route: string): onSendHookHandler {
    const counts = countsOf(route);
    return (request, reply, payload, done) => {
      const { statusCode } = reply.raw;
      const milliseconds = performance.now() - request.startedMs;
      counts.add(request.raw.method ?? '', statusCode, milliseconds / 1000);
      logAnswer(request, route, statusCode, milliseconds, isSold(reply));
      done(null, payload);
    };
  }

  app.addHook('onRoute', (route) => {
    route.onSend = [...[route.onSend ?? []].flat(), observer(route.url)];
  });

  return {
    /** Counts and logs an answer that no route gives, under the pattern of a path that answers other methods where one is given. */
    unmatched(request: FastifyRequest, status: number, route = UNMATCHED): void {
      const milliseconds = performance.now() - request.startedMs;
      countsOf(route).add(request.raw.method ?? '', status, milliseconds / 1000);
      logAnswer(request, route, status, milliseconds, false);
    },
  };
}

function isSold(reply: FastifyReply): boolean {
  return reply.raw.statusCode === 200 && reply.hasHeader('payment-response');
}
