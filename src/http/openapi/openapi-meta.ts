import { LIGHTNING_DESCRIPTOR } from './openapi-lightning.ts';
import { type Json, json, problemAnswer } from './openapi-shapes.ts';

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
    networkName: { type: 'string', description: 'The chain’s name for people' },
    playMoney: { type: 'boolean', description: 'Whether its coins are worth nothing, as on a demo’s local chain' },
    asset: { type: ['string', 'null'], description: 'The USDC contract' },
    payTo: { type: ['string', 'null'] },
    currency: { type: 'string', enum: ['USD'] },
    routes: { type: 'array', items: PRICED_ROUTE },
    source: { type: 'object' },
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
          accepts: { type: 'array', items: { type: 'object' }, description: 'As the 402 of the route has them' },
          metadata: { type: 'object', description: 'Name, price in USD, parameters and an example of the answer' },
        },
        required: ['resource', 'type', 'x402Version', 'accepts', 'metadata'],
      },
    },
    documents: { type: 'object', description: 'Where the rest is described' },
  },
  required: ['x402Version', 'version', 'name', 'resources', 'items', 'documents'],
};

const FOUND_PAYMENTS = {
  type: 'object',
  properties: {
    payments: {
      type: 'array',
      items: {
        type: 'object',
        properties: {
          rail: { type: 'string', enum: ['usdc', 'lightning'] },
          amount: { type: 'string', description: 'Base units of USDC (6 decimals), or millisatoshis' },
          state: {
            type: 'string',
            enum: ['reserved', 'settling', 'settled', 'unknown', 'failed', 'claimed', 'delivered'],
            description:
              'USDC: reserved (the answer is being made), settling, settled, unknown (no final answer yet), failed (no money moved). Lightning: claimed (paid, not fetched yet), delivered',
          },
          transaction: {
            type: ['string', 'null'],
            description: 'Transaction hash, payment hash, or the Gateway’s transfer id; null while there is none',
          },
          block: {
            type: ['integer', 'null'],
            description: 'Of the transaction; null while unknown, and over Lightning',
          },
          at: { type: 'integer', description: 'Unix seconds of its newest step' },
          explorerUrl: { type: ['string', 'null'], description: 'The transaction at the chain’s explorer' },
          protocol: {
            type: ['string', 'null'],
            description: 'The protocol that presented the payment: x402, l402 or mpp. Null where none is noted.',
          },
        },
        required: ['rail', 'amount', 'state', 'transaction', 'block', 'at', 'explorerUrl', 'protocol'],
      },
    },
  },
  required: ['payments'],
};

const NOT_KNOWN = problemAnswer('The ledger knows no such payment');

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
  {
    url: '/v1/payments/{id}',
    schema: {
      operationId: 'payment',
      summary:
        'What became of a payment, by authorization nonce, transaction hash or payment hash; never who paid or for what.',
      description:
        'Free, for anyone who knows the identifier. One transaction may settle several payments, so the answer is a list. Use it after a 503 or a lost ' +
        'connection: `settled`, `claimed` and `delivered` mean that the payment was taken, `failed` that it was not, and `reserved`, `settling` and ' +
        '`unknown` that it is open: present the same payment again.',
      params: {
        type: 'object',
        properties: {
          id: {
            type: 'string',
            description:
              'The nonce of a USDC authorization, the hash of its transaction, or the payment hash of an invoice: 32 bytes in hex, with or without 0x. Or the id of a Gateway transfer (a UUID)',
          },
        },
        required: ['id'],
      },
      response: { 200: json(FOUND_PAYMENTS, 'The payments of this identifier'), 404: NOT_KNOWN },
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
    url: '/openapi-priced.json',
    schema: {
      operationId: 'openapiPriced',
      summary: 'The priced routes of this document alone, under 64 KiB, for crawlers.',
      response: { 200: json({ type: 'object' }, 'OpenAPI 3.1') },
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

/** The addresses of the tools server. MCP defines the content of its messages. */
export const MCP_OPERATIONS: readonly { readonly url: string; readonly schema: Json }[] = [
  {
    url: '/mcp',
    schema: mcp('mcp', 'Every route as a tool, over MCP (streamable HTTP, stateless); priced ones in USDC.'),
  },
  {
    url: '/mcp/lightning',
    schema: mcp('mcpLightning', 'The same, with the tools that bitcoin buys: an unpaid call is offered an invoice.'),
  },
];

function mcp(operationId: string, summary: string): Json {
  return {
    operationId,
    summary,
    description:
      'A `paid_…` tool without payment returns `isError`, a sentence with the price, and x402\u2019s PaymentRequired; repeat the call with the payload in `_meta["x402/payment"]`, the receipt is in `_meta["x402/payment-response"]`.',
    querystring: {
      type: 'object',
      properties: {
        schemas: { type: 'string', enum: ['full'], description: 'Lists the schemas of the answers too' },
      },
    },
    body: { type: 'object', description: 'One JSON-RPC 2.0 message' },
    response: {
      200: json({ type: 'object' }, 'One JSON-RPC 2.0 message'),
      202: { description: 'A notification was taken' },
      400: json({ type: 'object' }, 'No JSON-RPC message, or several'),
      429: json({ type: 'object' }, 'Too many messages'),
    },
  };
}
