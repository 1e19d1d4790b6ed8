import type { FastifyInstance, RouteOptions } from 'fastify';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn, PREFIX, servedPaths } from '../catalogue/paths.ts';
import type { Limited } from '../http/rate-limit.ts';
import type { Gate } from '../payment/gate.ts';

// The routes that are sold in USDC, over x402 and over MPP. Each is mounted with the gate of its payment in front of a
// handler that nothing reaches, and the service does not start while a priced route has no gate.

/** What one priced prefix sells, and the gate that asks for the payment. */
export interface PricedSurface<S> {
  readonly surface: 'paid' | 'lightning' | 'mpp';
  readonly gate: Gate<S>;
  readonly catalogue: readonly Endpoint<S>[];
  readonly chainSegment: string;
}

export interface Sold<S> {
  readonly paid: PricedSurface<S>;
  /** Absent where nothing is sold over Lightning. `describe`: node, rate and prices of this moment. */
  readonly lightning?: PricedSurface<S> & { describe(): Promise<object> };
  /** Null where MPP is off. */
  readonly mpp: PricedSurface<S> | null;
}

export async function paidRoutes<S>(app: FastifyInstance, { paid, limits }: Sold<S> & Limited): Promise<void> {
  limits.priced(app);
  for (const { endpoint, urls } of pricedEntries(paid)) {
    const { preHandler, handler } = paid.gate.guard(endpoint);
    // The preHandler is the payment: it answers every request, with 402 or with what was paid for.
    for (const url of urls) app.route({ method: ['GET', 'HEAD'], url, exposeHeadRoute: false, preHandler, handler });
  }
}

export async function mppRoutes<S>(app: FastifyInstance, { mpp, limits }: Sold<S> & Limited): Promise<void> {
  if (mpp === null) return;
  limits.priced(app);
  for (const { endpoint, urls } of pricedEntries(mpp)) {
    const { preHandler, handler } = mpp.gate.guard(endpoint);
    for (const url of urls) app.route({ method: ['GET', 'HEAD'], url, exposeHeadRoute: false, preHandler, handler });
  }
}

/** The priced entries of one surface, each with every path under which it is sold. */
export function pricedEntries<S>({ surface, catalogue, chainSegment }: PricedSurface<S>) {
  const sold = entriesOn(catalogue, surface === 'mpp' ? 'paid' : surface);
  return sold.map((endpoint) => ({ endpoint, urls: servedPaths(endpoint, surface, chainSegment) }));
}

/** Throws when a route below the surface's prefix has no gate, or when a path that it sells is not mounted. */
export function checkGates<S>(sold: PricedSurface<S>, routes: readonly RouteOptions[]): void {
  const prefix = PREFIX[sold.surface];
  const gated = new Set<string>();
  for (const route of routes) {
    const answered = [route.method].flat();
    const serves = answered.some((method) => method === 'GET' || method === 'HEAD');
    if (!serves || !route.url.toLowerCase().startsWith(`${prefix}/`)) continue;
    if (!sold.gate.isGuarded(route))
      throw new Error(`${answered.join(',')} ${route.url} is below ${prefix} and has no gate`);
    gated.add(route.url);
  }
  for (const url of pricedEntries(sold).flatMap(({ urls }) => urls)) {
    if (!gated.has(url)) throw new Error(`${url} is priced and not mounted`);
  }
}
