import type { FastifyInstance, HTTPMethods, RouteOptions } from 'fastify';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn, PREFIX, servedPaths } from '../catalogue/paths.ts';
import type { Gate } from '../payment/gate.ts';

// Every priced entry is mounted behind its gate, and the service does not start while a priced route has none.

/** The methods of each priced surface. A HEAD over Lightning would make the node create an invoice, so it gets 405. */
const METHODS = {
  paid: ['GET', 'HEAD'],
  lightning: ['GET'],
  mpp: ['GET', 'HEAD'],
} satisfies Record<string, HTTPMethods[]>;

const SELLS = { paid: 'paid', lightning: 'lightning', mpp: 'paid' } as const;

export interface PricedSurface<S> {
  readonly surface: keyof typeof METHODS;
  readonly gate: Gate<S>;
  readonly catalogue: readonly Endpoint<S>[];
  readonly chainSegment: string;
}

export function mountPriced<S>(
  app: FastifyInstance,
  { surface, gate, catalogue, chainSegment }: PricedSurface<S>,
): void {
  const methods = METHODS[surface];
  for (const endpoint of entriesOn(catalogue, SELLS[surface])) {
    const gated = gate.guard(endpoint);
    for (const url of servedPaths(endpoint, surface, chainSegment)) {
      app.route({ method: methods, url, exposeHeadRoute: false, ...gated });
    }
  }
}

/** Throws when a route below the surface's prefix has no gate, or when a path that it sells is not mounted. */
export function checkGates<S>(
  { surface, gate, catalogue, chainSegment }: PricedSurface<S>,
  routes: readonly RouteOptions[],
): void {
  const [prefix, methods] = [PREFIX[surface], METHODS[surface] as readonly string[]];
  const expected = entriesOn(catalogue, SELLS[surface]).flatMap((entry) => servedPaths(entry, surface, chainSegment));
  const gated = new Set<string>();
  for (const route of routes) {
    const answered = [route.method].flat();
    const serves = answered.some((method) => methods.includes(method));
    if (!serves || !route.url.toLowerCase().startsWith(`${prefix}/`)) continue;
    if (!gate.isGuarded(route))
      throw new Error(`${answered.join(',')} ${route.url} is below ${prefix} and has no gate`);
    gated.add(route.url);
  }
  for (const url of expected) {
    if (!gated.has(url)) throw new Error(`${url} is priced and not mounted`);
  }
}
