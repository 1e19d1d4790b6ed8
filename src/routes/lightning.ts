import type { FastifyInstance, RouteOptions } from 'fastify';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn, PREFIX, servedPaths } from '../catalogue/paths.ts';
import { refuseOtherMethods } from '../http/methods.ts';
import type { Lightning } from '../payment/rails/lightning/open.ts';
import { assertGated } from './gated.ts';

type Gate<S> = Lightning<S>['gate'];

/** Mounts every endpoint that is sold over Lightning, in each spelling of its path. GET alone: a HEAD would cost the node an invoice. */
export function mountLightning<S>(
  app: FastifyInstance,
  gate: Gate<S>,
  catalogue: readonly Endpoint<S>[],
  chainSegment: string,
): void {
  for (const endpoint of entriesOn(catalogue, 'lightning')) {
    const { handler } = gate.guard(endpoint);
    for (const url of servedPaths(endpoint, 'lightning', chainSegment)) {
      app.route({ method: 'GET', url, exposeHeadRoute: false, handler });
      refuseOtherMethods(app, url, ['GET']);
    }
  }
}

/** Throws when a route below the Lightning prefix has no gate, or a spelling of a sold path is not mounted. */
export function checkLightningGates<S>(
  gate: Gate<S>,
  routes: readonly RouteOptions[],
  catalogue: readonly Endpoint<S>[],
  chainSegment: string,
): void {
  const expected = entriesOn(catalogue, 'lightning').flatMap((entry) => servedPaths(entry, 'lightning', chainSegment));
  // A HEAD is refused with 405.
  assertGated(PREFIX.lightning, ['GET'], routes, gate.isGuarded, expected);
}

/** Mounts the description of the rail: of this moment, because its rate and node are. */
export function mountLightningDescriptor(app: FastifyInstance, describe: () => Promise<object>): void {
  const url = PREFIX.lightning;
  app.route({
    method: ['GET', 'HEAD'],
    url,
    handler: async (_request, reply) => reply.header('cache-control', 'no-store').send(await describe()),
  });
  refuseOtherMethods(app, url, ['GET', 'HEAD']);
}
