import type { FastifyInstance } from 'fastify';
import { PREFIX } from '../catalogue/paths.ts';
import { anyObject, type Json } from '../http/openapi/route.ts';

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

/** The 402 of this rail: its body repeats the header, with the price. */
export const LIGHTNING_CHALLENGE: Json = {
  type: 'object',
  description: 'The JSON of the PAYMENT-REQUIRED header, and the price',
  properties: {
    x402Version: { type: 'integer', enum: [2] },
    error: { type: 'string', description: 'Why this is no answer yet; the reason when a proof was refused' },
    resource: anyObject,
    accepts: {
      type: 'array',
      description:
        'What to pay: `amount` in millisatoshis, `extra.invoice` the BOLT11 invoice. Empty when a proof was refused and no new invoice can be made now.',
      items: anyObject,
    },
    extensions: { ...anyObject, description: '`bazaar`: how the route is called' },
    priceUsd: { type: ['string', 'null'], description: 'Decimal USD' },
    btcUsd: { type: ['string', 'null'], description: 'The rate of the quote; null without one' },
  },
  required: ['x402Version', 'error', 'resource', 'accepts', 'extensions', 'priceUsd', 'btcUsd'],
};

export const LIGHTNING_DESCRIPTOR: Json = {
  type: 'object',
  properties: {
    scheme: { type: 'string', enum: ['exact'] },
    network: { type: 'string' },
    asset: { type: 'string', enum: ['BTC'] },
    payTo: { type: ['string', 'null'], description: 'Key of our node; null while it is unknown' },
    spec: { type: 'string', description: 'The scheme\u2019s page' },
    protocols: {
      type: 'array',
      description: 'The protocols in which a 402 asks for the same invoice; a proof of any of them buys the answer',
      items: {
        type: 'object',
        properties: {
          name: { type: 'string', enum: ['x402', 'l402', 'mpp'] },
          asks: { type: 'string', description: 'The header of the 402' },
          pays: { type: 'string', description: 'The header of the paid request' },
        },
        required: ['name', 'asks', 'pays'],
      },
    },
    pricing: { type: 'string' },
    btcUsd: {
      type: ['string', 'null'],
      description: 'Decimal BTC/USD of a quote made now; null while the exchanges give none',
    },
    rate: {
      type: ['object', 'null'],
      properties: {
        exchanges: {
          type: 'array',
          items: { type: 'object', properties: { name: { type: 'string' }, rate: { type: 'string' } } },
        },
        retrievedAt: { type: 'integer' },
        ageSeconds: { type: 'integer' },
      },
    },
    routes: {
      type: 'array',
      items: {
        type: 'object',
        properties: { route: { type: 'string' }, priceUsd: { type: 'string' } },
        required: ['route', 'priceUsd'],
      },
    },
  },
  required: ['scheme', 'network', 'asset', 'payTo', 'spec', 'protocols', 'pricing', 'btcUsd', 'rate', 'routes'],
};
