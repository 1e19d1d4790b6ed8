import type { FastifyInstance } from 'fastify';
import { z } from 'zod';
import { PREFIX } from '../catalogue/paths.ts';
import { defineRoute, inJson, said, saidOrNull, serve } from '../http/openapi/route.ts';
import type { Limited } from '../http/rate-limit.ts';
import { pricedEntries, type Sold } from './paid.ts';

// What is sold in bitcoin over Lightning, and how it is sold.

/** The protocols in which a 402 asks for one invoice. The paid request has the proof in the form of one of them. */
const PROTOCOLS = [
  { name: 'x402', asks: 'PAYMENT-REQUIRED', pays: 'PAYMENT-SIGNATURE' },
  { name: 'l402', asks: 'WWW-Authenticate: L402', pays: 'Authorization: L402' },
  { name: 'mpp', asks: 'WWW-Authenticate: Payment (method lightning, intent charge)', pays: 'Authorization: Payment' },
];

export const DESCRIBE = defineRoute('GET', PREFIX.lightning, {
  id: 'lightningDescriptor',
  tag: 'meta',
  summary: 'How the routes are sold over Lightning: node, rate and its age, prices; free.',
  description: 'Made at the call: rate and node hold only then. The 402 of a route quotes its sats.',
  answers: {
    200: inJson(
      z.object({
        scheme: z.enum(['exact']),
        network: z.string(),
        asset: z.enum(['BTC']),
        payTo: saidOrNull('Key of our node; null while it is unknown'),
        spec: said('The scheme\u2019s page'),
        protocols: z
          .array(
            z.object({
              name: z.enum(['x402', 'l402', 'mpp']),
              asks: said('The header of the 402'),
              pays: said('The header of the paid request'),
            }),
          )
          .meta({
            description:
              'The protocols in which a 402 asks for the same invoice; a proof of any of them buys the answer',
          }),
        pricing: z.string(),
        btcUsd: saidOrNull('Decimal BTC/USD of a quote made now; null while the exchanges give none'),
        rate: z
          .object({
            exchanges: z.array(z.object({ name: z.string(), rate: z.string() }).partial()),
            retrievedAt: z.int(),
            ageSeconds: z.int(),
          })
          .partial()
          .nullable(),
        routes: z.array(z.object({ route: z.string(), priceUsd: z.string() })),
      }),
      'The descriptor',
    ),
  },
});

/** The routes that are sold in bitcoin, and the free description of the rail. */
export async function lightningRoutes<S>(
  app: FastifyInstance,
  { lightning, limits }: Sold<S> & Limited,
): Promise<void> {
  if (lightning === undefined) return;
  await app.register(async (free) => {
    limits.free(free);
    // It is not cached: rate and node state hold only at this moment.
    serve(free, DESCRIBE, async (_request, reply) =>
      reply.header('cache-control', 'no-store').send({ ...(await lightning.describe()), protocols: PROTOCOLS }),
    );
  });
  await app.register(async (sold) => {
    limits.priced(sold);
    for (const { endpoint, urls } of pricedEntries(lightning)) {
      const { preHandler, handler } = lightning.gate.guard(endpoint);
      // The preHandler is the payment. A HEAD would make the node create an invoice, so it gets 405.
      for (const url of urls) sold.route({ method: 'GET', url, exposeHeadRoute: false, preHandler, handler });
    }
  });
}
