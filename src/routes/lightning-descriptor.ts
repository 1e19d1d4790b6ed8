import type { FastifyInstance } from 'fastify';
import { PREFIX } from '../catalogue/paths.ts';

/** The protocols in which a 402 asks for one invoice. The paid request has the proof in the form of one of them. */
const PROTOCOLS = [
  { name: 'x402', asks: 'PAYMENT-REQUIRED', pays: 'PAYMENT-SIGNATURE' },
  { name: 'l402', asks: 'WWW-Authenticate: L402', pays: 'Authorization: L402' },
  { name: 'mpp', asks: 'WWW-Authenticate: Payment (method lightning, intent charge)', pays: 'Authorization: Payment' },
];

/** Mounts the description of the Lightning rail. It is not cached, because the rate and the node's state hold only at this moment. */
export function mountLightningDescriptor(app: FastifyInstance, describe: () => Promise<object>): void {
  const url = PREFIX.lightning;
  app.route({
    method: ['GET', 'HEAD'],
    url,
    handler: async (_request, reply) => {
      const description = { ...(await describe()), protocols: PROTOCOLS };
      return reply.header('cache-control', 'no-store').send(description);
    },
  });
}
