import type { FastifyInstance } from 'fastify';
import { PREFIX } from '../catalogue/paths.ts';
import { mountGet } from '../http/answers.ts';
import { anyObject, integer, type Json, json, type Operation, object, orNull, text } from '../http/openapi/route.ts';
import type { Limited } from '../http/rate-limit.ts';
import { pricedEntries, type Sold } from './paid.ts';

// What is sold in bitcoin over Lightning, and how it is sold.

/** The protocols in which a 402 asks for one invoice. The paid request has the proof in the form of one of them. */
const PROTOCOLS = [
  { name: 'x402', asks: 'PAYMENT-REQUIRED', pays: 'PAYMENT-SIGNATURE' },
  { name: 'l402', asks: 'WWW-Authenticate: L402', pays: 'Authorization: L402' },
  { name: 'mpp', asks: 'WWW-Authenticate: Payment (method lightning, intent charge)', pays: 'Authorization: Payment' },
];

/** The routes that are sold in bitcoin, and the free description of the rail. */
export async function lightningRoutes<S>(
  app: FastifyInstance,
  { lightning, limits }: Sold<S> & Limited,
): Promise<void> {
  if (lightning === undefined) return;
  await app.register(async (free) => {
    limits.free(free);
    mountDescriptor(free, lightning.describe);
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

/** It is not cached: rate and node state hold only at this moment. */
function mountDescriptor(app: FastifyInstance, describe: () => Promise<object>): void {
  mountGet(app, PREFIX.lightning, async (_request, reply) => {
    const description = { ...(await describe()), protocols: PROTOCOLS };
    return reply.header('cache-control', 'no-store').send(description);
  });
}

const DESCRIPTOR = object({
  scheme: { ...text, enum: ['exact'] },
  network: text,
  asset: { ...text, enum: ['BTC'] },
  payTo: orNull('string', 'Key of our node; null while it is unknown'),
  spec: { ...text, description: 'The scheme\u2019s page' },
  protocols: {
    type: 'array',
    description: 'The protocols in which a 402 asks for the same invoice; a proof of any of them buys the answer',
    items: object({
      name: { ...text, enum: ['x402', 'l402', 'mpp'] },
      asks: { ...text, description: 'The header of the 402' },
      pays: { ...text, description: 'The header of the paid request' },
    }),
  },
  pricing: text,
  btcUsd: orNull('string', 'Decimal BTC/USD of a quote made now; null while the exchanges give none'),
  rate: {
    type: ['object', 'null'],
    properties: {
      exchanges: { type: 'array', items: { type: 'object', properties: { name: text, rate: text } } },
      retrievedAt: integer,
      ageSeconds: integer,
    },
  },
  routes: { type: 'array', items: object({ route: text, priceUsd: text }) },
});

export const LIGHTNING_OPERATION: Operation = {
  method: 'GET',
  url: '/v1/lightning',
  schema: {
    operationId: 'lightningDescriptor',
    summary: 'How the routes are sold over Lightning: node, rate and its age, prices; free.',
    response: { 200: json(DESCRIPTOR, 'The descriptor') },
    tags: ['meta'],
  },
};

/** The 402 of this rail: its body repeats the header, with the price. */
export const LIGHTNING_CHALLENGE: Json = {
  type: 'object',
  description: 'The JSON of the PAYMENT-REQUIRED header, and the price',
  ...object({
    x402Version: { type: 'integer', enum: [2] },
    error: { ...text, description: 'Why this is no answer yet; the reason when a proof was refused' },
    resource: anyObject,
    accepts: {
      type: 'array',
      description:
        'What to pay: `amount` in millisatoshis, `extra.invoice` the BOLT11 invoice. Empty when a proof was refused ' +
        'and no new invoice can be made now.',
      items: anyObject,
    },
    extensions: { ...anyObject, description: '`bazaar`: how the route is called' },
    priceUsd: orNull('string', 'Decimal USD'),
    btcUsd: orNull('string', 'The rate of the quote; null without one'),
  }),
};
