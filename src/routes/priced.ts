import type { FastifyInstance, HTTPMethods, RouteOptions } from 'fastify';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn, PREFIX, servedPaths } from '../catalogue/paths.ts';
import type { Gate } from '../payment/gate.ts';

/** The priced surfaces and the methods that each answers. A HEAD over Lightning would make the node create an invoice, so it gets 405. */
const METHODS = {
  paid: ['GET', 'HEAD'],
  lightning: ['GET'],
  mpp: ['GET', 'HEAD'],
} satisfies Record<string, HTTPMethods[]>;

/** The entries of the catalogue that each mount sells. */
const SELLS = { paid: 'paid', lightning: 'lightning', mpp: 'paid' } as const;

/** One priced mount: its endpoints, its gate and the paths of each endpoint. */
export interface PricedSurface<S> {
  readonly surface: keyof typeof METHODS;
  readonly gate: Gate<S>;
  readonly catalogue: readonly Endpoint<S>[];
  readonly chainSegment: string;
}

/** Mounts every endpoint of a surface behind its gate. */
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

/** Throws when a route below the surface's prefix has no gate, or when a path that the surface sells is not mounted. */
export function checkGates<S>(
  { surface, gate, catalogue, chainSegment }: PricedSurface<S>,
  routes: readonly RouteOptions[],
): void {
  const expected = entriesOn(catalogue, SELLS[surface]).flatMap((entry) => servedPaths(entry, surface, chainSegment));
  assertGated(PREFIX[surface], METHODS[surface], routes, gate.isGuarded, expected);
}

/**
 * Throws when a route below a priced prefix that answers one of `methods` is not registered by its gate, or when an expected path is not mounted.
 * So the service does not start with an unprotected route.
 */
function assertGated(
  prefix: string,
  methods: readonly string[],
  routes: readonly RouteOptions[],
  isGuarded: (route: RouteOptions) => boolean,
  expected: readonly string[],
): void {
  const gated = new Set<string>();
  for (const route of routes) {
    const answered = [route.method].flat();
    const serves = answered.some((method) => methods.includes(method));
    if (!serves || !route.url.toLowerCase().startsWith(`${prefix}/`)) continue;
    if (!isGuarded(route)) throw new Error(`${answered.join(',')} ${route.url} is below ${prefix} and has no gate`);
    gated.add(route.url);
  }
  for (const url of expected) {
    if (!gated.has(url)) throw new Error(`${url} is priced and not mounted`);
  }
}
