type Json = Record<string, unknown>;

const json = (schema: Json, description: string): Json => ({
  description,
  content: { 'application/json': { schema } },
});

const CHECKS = {
  type: 'object',
  additionalProperties: {
    type: 'object',
    properties: { ok: { type: 'boolean' }, detail: { type: 'string' } },
    required: ['ok'],
  },
};

const PRICED_ROUTE = {
  type: 'object',
  properties: {
    route: { type: 'string', examples: ['GET /v1/paid/fees/estimate'] },
    priceUsd: { type: 'string', description: 'Decimal USD' },
    amount: { type: 'string', description: 'The same in base units of the asset' },
    label: { type: 'string' },
    summary: { type: 'string' },
    freeSummary: { type: ['string', 'null'], description: 'Path of the free route that summarises this one' },
    params: {
      type: 'array',
      items: {
        type: 'object',
        properties: { name: { type: 'string' }, required: { type: 'boolean' }, description: { type: 'string' } },
        required: ['name', 'required', 'description'],
      },
    },
  },
  required: ['route', 'priceUsd', 'amount', 'label', 'summary', 'freeSummary', 'params'],
};

const PRICE_LIST = {
  type: 'object',
  properties: {
    scheme: { type: ['string', 'null'] },
    network: { type: ['string', 'null'], description: 'CAIP-2' },
    asset: { type: ['string', 'null'], description: 'The USDC contract' },
    payTo: { type: ['string', 'null'] },
    currency: { type: 'string', enum: ['USD'] },
    routes: { type: 'array', items: PRICED_ROUTE },
    source: { type: 'object' },
  },
  required: ['scheme', 'network', 'asset', 'payTo', 'currency', 'routes', 'source'],
};

const NOT_READY = {
  description: 'Not ready, or stopping; `checks` says what is missing',
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
};

/** The routes about the service itself, in the form in which Fastify's swagger plugin takes a route's schema. */
export const META_OPERATIONS: readonly { readonly url: string; readonly schema: Json }[] = [
  {
    url: '/v1/paid',
    schema: {
      operationId: 'priceList',
      summary: 'Every priced route with its price and its parameters; free.',
      response: { 200: json(PRICE_LIST, 'The price list') },
    },
  },
  {
    url: '/openapi.json',
    schema: {
      operationId: 'openapi',
      summary: 'This document.',
      response: { 200: json({ type: 'object' }, 'OpenAPI 3.1') },
    },
  },
  {
    url: '/livez',
    schema: {
      operationId: 'livez',
      summary: 'Whether the process runs.',
      response: { 200: json({ type: 'object', properties: { status: { type: 'string', enum: ['ok'] } } }, 'It runs') },
    },
  },
  {
    url: '/readyz',
    schema: {
      operationId: 'readyz',
      summary: 'Whether the service can serve and sell now.',
      response: {
        200: json({ type: 'object', properties: { ready: { type: 'boolean' }, checks: CHECKS } }, 'Ready'),
        503: NOT_READY,
      },
    },
  },
];
