import type { FastifyInstance, RouteOptions } from 'fastify';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn, PREFIX, servedPaths } from '../catalogue/paths.ts';
import { refuseOtherMethods } from '../http/methods.ts';
import type { Gate } from '../payment/gate.ts';
import { assertGated } from './gated.ts';

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

/** Throws when a route below the priced prefix has no gate, or a spelling of a priced path is not mounted. */
export function checkGates<S>(
  gate: Gate<S>,
  routes: readonly RouteOptions[],
  catalogue: readonly Endpoint<S>[],
  chainSegment: string,
): void {
  const expected = entriesOn(catalogue, 'paid').flatMap((entry) => servedPaths(entry, 'paid', chainSegment));
  assertGated(PREFIX.paid, ['GET', 'HEAD'], routes, gate.isGuarded, expected);
}
