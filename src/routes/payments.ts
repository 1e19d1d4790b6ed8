import type { FastifyInstance } from 'fastify';
import { refuseOtherMethods } from '../http/methods.ts';
import type { FoundPayment } from '../payment/lookup.ts';

/** Finds payments by an identifier; throws NotFound when there is none. */
export type Lookup = (id: string) => Promise<{ readonly payments: readonly FoundPayment[] }>;

/** Mounts the payment lookup: a caller who knows the nonce or the hash learns what happened to the money. */
export function mountLookup(app: FastifyInstance, lookup: Lookup): void {
  const url = '/v1/payments/:id';
  app.route<{ Params: { id: string } }>({
    method: ['GET', 'HEAD'],
    url,
    handler: async (request, reply) => {
      const found = await lookup(request.params.id);
      return reply.header('cache-control', 'no-store').send(found);
    },
  });
  refuseOtherMethods(app, url, ['GET', 'HEAD']);
}
