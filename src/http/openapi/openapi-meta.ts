import { LIGHTNING_DESCRIPTOR } from './openapi-lightning.ts';
import { LOOKUP_OPERATION } from './openapi-lookup.ts';
import { anyObject, type Json, json, problemAnswer } from './openapi-shapes.ts';
import { reference } from './openapi-shared.ts';

const CHECKS = {
  type: 'object',
  additionalProperties: {
    type: 'object',
    properties: { ok: { type: 'boolean' }, detail: { type: 'string', description: 'What is wrong, in words' } },
    required: ['ok'],
    // Some checks have readings of their own.
    additionalProperties: true,
  },
};

const PRICED_ROUTE = {
  type: 'object',
  properties: {
    route: { type: 'string', examples: ['GET /v1/paid/selftest/fail'] },
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
    networkName: { type: 'string', description: 'The chain’s name for people' },
    playMoney: { type: 'boolean', description: 'Whether its coins are worth nothing, as on a demo’s local chain' },
    asset: { type: ['string', 'null'], description: 'The USDC contract' },
    payTo: { type: ['string', 'null'] },
    currency: { type: 'string', enum: ['USD'] },
    routes: { type: 'array', items: PRICED_ROUTE },
    source: reference('schemas', 'Source'),
  },
  required: [...['scheme', 'network', 'networkName', 'playMoney', 'asset', 'payTo', 'currency', 'routes', 'source']],
};

const WELL_KNOWN = {
  type: 'object',
  properties: {
    x402Version: { type: 'integer', enum: [2] },
    version: { type: 'integer', enum: [1], description: 'Of this document’s form' },
    name: { type: 'string' },
    resources: { type: 'array', items: { type: 'string' }, description: 'The addresses alone' },
    items: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          resource: { type: 'string' },
          type: { type: 'string', enum: ['http'] },
          x402Version: { type: 'integer', enum: [2] },
          accepts: { type: 'array', items: anyObject, description: 'As the 402 of the route has them' },
          metadata: { ...anyObject, description: 'Name, price in USD, parameters and an example of the answer' },
        },
        required: ['resource', 'type', 'x402Version', 'accepts', 'metadata'],
      },
    },
    documents: { ...anyObject, description: 'Where the rest is described' },
  },
  required: ['x402Version', 'version', 'name', 'resources', 'items', 'documents'],
};

const NOT_READY = problemAnswer('Not ready, or stopping; `checks` says what is missing');

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
    url: '/v1/lightning',
    schema: {
      operationId: 'lightningDescriptor',
      summary: 'How the routes are sold over Lightning: node, rate and its age, prices; free.',
      response: { 200: json(LIGHTNING_DESCRIPTOR, 'The descriptor') },
    },
  },
  LOOKUP_OPERATION,
  {
    url: '/openapi.json',
    schema: {
      operationId: 'openapi',
      summary: 'This document.',
      response: { 200: json(anyObject, 'OpenAPI 3.1') },
    },
  },
  {
    url: '/openapi-priced.json',
    schema: {
      operationId: 'openapiPriced',
      summary: 'The priced routes of this document alone, under 64 KiB, for crawlers.',
      response: { 200: json(anyObject, 'OpenAPI 3.1') },
    },
  },
  {
    url: '/llms.txt',
    schema: {
      operationId: 'llmsText',
      summary: 'What is sold, at which price and how to pay, in 4,000 characters for models.',
      response: { 200: { description: 'Markdown', content: { 'text/plain': { schema: { type: 'string' } } } } },
    },
  },
  {
    url: '/.well-known/x402',
    schema: {
      operationId: 'wellKnown',
      summary: 'The USDC routes with their terms, for crawlers; the same at /.well-known/x402.json.',
      description: 'The form follows drafts that are not final. Only the 402 of a route is binding.',
      response: { 200: json(WELL_KNOWN, 'The manifest') },
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
