import type { FastifyInstance } from 'fastify';
import { PREFIX } from '../catalogue/paths.ts';
import { refuseOtherMethods } from '../http/methods.ts';

/** Mounts the description of the Lightning rail. It is not cached, because the rate and the node's state hold only at this moment. */
export function mountLightningDescriptor(app: FastifyInstance, describe: () => Promise<object>): void {
  const url = PREFIX.lightning;
  app.route({
    method: ['GET', 'HEAD'],
    url,
    handler: async (_request, reply) => reply.header('cache-control', 'no-store').send(await describe()),
  });
  refuseOtherMethods(app, url, ['GET', 'HEAD']);
}
