import type { FastifyInstance, RouteOptions } from 'fastify';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn, PREFIX, servedPaths } from '../catalogue/paths.ts';
import { refuseOtherMethods } from '../http/methods.ts';
import type { Gate } from '../payment/gate.ts';

/** Mounts every priced endpoint behind the gate, in each spelling of its path. */
export function mountPaid<S>(
  app: FastifyInstance,
  gate: Gate<S>,
  catalogue: readonly Endpoint<S>[],
  chainSegment: string,
): void {
  for (const endpoint of entriesOn(catalogue, 'paid')) {
    const { handler } = gate.guard(endpoint);
    for (const url of servedPaths(endpoint, 'paid', chainSegment)) {
      app.route({ method: ['GET', 'HEAD'], url, handler });
      refuseOtherMethods(app, url, ['GET', 'HEAD']);
    }
  }
}

/**
 * Throws when a GET or HEAD route below the priced prefix is not the gate's own, or a spelling of a priced path is not mounted,
 * so that the service does not start with a hole.
 */
export function checkGates<S>(
  gate: Gate<S>,
  routes: readonly RouteOptions[],
  catalogue: readonly Endpoint<S>[],
  chainSegment: string,
): void {
  const gated = new Set<string>();
  for (const route of routes) {
    const methods = [route.method].flat();
    const serves = methods.some((method) => method === 'GET' || method === 'HEAD');
    if (!serves || !route.url.toLowerCase().startsWith(`${PREFIX.paid}/`)) continue;
    if (!gate.isGuarded(route)) {
      throw new Error(`${methods.join(',')} ${route.url} is below ${PREFIX.paid} and has no gate`);
    }
    gated.add(route.url);
  }
  for (const endpoint of entriesOn(catalogue, 'paid')) {
    for (const url of servedPaths(endpoint, 'paid', chainSegment)) {
      if (!gated.has(url)) throw new Error(`${url} is priced and not mounted`);
    }
  }
}
