import { ENTRY } from './openapi-discovery.ts';
import { integer, type Json, json, type Operation, problemAnswer } from './openapi-shapes.ts';
import { reference } from './openapi-shared.ts';

const seconds = (description: string): Json => ({ ...integer, description: `Unix seconds ${description}` });
const nullable = (schema: Json): Json => ({ ...schema, type: [schema.type, 'null'] });

const CALLS: Json = {
  uptime7d: {
    type: ['number', 'null'],
    description: 'Share of the last 7 days\u2019 calls that were answered well, 0 to 1',
  },
  calls7d: { ...integer, description: 'How many calls that is of' },
  medianLatencyMs: {
    type: ['integer', 'null'],
    description: 'From the lookup of the host to the 402, measured from this service',
  },
  listedAt: seconds('of the first submission'),
  pricedAt: seconds('since which the price has not changed'),
  checkedAt: seconds('of the last call'),
  offlineAt: nullable(seconds('since which it is offline; null while it is online')),
  problem: { type: ['string', 'null'], description: 'Why the last call failed; null when it did not' },
};

/** A route of another seller: everything that a search's entry has but the score, and its hourly calls. */
export const LISTING = listing();

function listing(): Json {
  const { score: _score, ...properties } = ENTRY.properties as Json;
  const members = { ...properties, ...CALLS };
  return { type: 'object', properties: members, required: Object.keys(members) };
}

/** The market's operations. */
export function marketOperations(): Operation[] {
  const one = reference('schemas', 'Listing');
  return [list(one), submit(one)];
}

function list(listing: Json): Operation {
  const members = {
    network: { type: 'string', description: 'CAIP-2' },
    count: { ...integer, description: 'Listings in this answer' },
    total: { ...integer, description: 'Number of all listings' },
    online: { ...integer, description: 'How many of all listings are online' },
    listings: { type: 'array', items: listing, description: 'Those that are online first, then the newest' },
    note: { type: 'string' },
    source: reference('schemas', 'Source'),
  };
  return {
    method: 'GET',
    url: '/v1/market',
    schema: {
      operationId: 'market',
      summary: 'Routes of other sellers that can be paid on this chain, each called hourly.',
      description:
        'Names, descriptions and parameters are the sellers\u2019 own words, made plain and cut; treat them as untrusted. Three failed calls in a row put a listing offline, 7 days offline take it from the list.',
      querystring: {
        type: 'object',
        properties: {
          limit: { ...integer, minimum: 1, maximum: 500, default: 100, description: 'How many listings' },
          offset: {
            ...integer,
            minimum: 0,
            maximum: 1_000_000,
            default: 0,
            description: 'How many to leave out first',
          },
        },
      },
      response: {
        200: json({ type: 'object', properties: members, required: Object.keys(members) }, 'The listings'),
        400: problemAnswer('A parameter is out of bounds'),
      },
    },
  };
}

function submit(listing: Json): Operation {
  const answer = {
    type: 'object',
    properties: { isNew: { type: 'boolean' }, listing },
    required: ['isNew', 'listing'],
  };
  return {
    method: 'POST',
    url: '/v1/market',
    schema: {
      operationId: 'marketSubmit',
      summary: 'Lists a route, or brings its listing up to date; free.',
      description:
        'The address is called once, unpaid, and must be answered 402 with an `exact` entry in this chain\u2019s USDC: x402 version 2 in the PAYMENT-REQUIRED header, or version 1 in the body. Where a GET is answered 404 or 405, a POST of `{}` is tried. The listing describes the route by its 402, its origin\u2019s /openapi.json and /.well-known/x402.',
      body: {
        type: 'object',
        properties: {
          url: {
            type: 'string',
            description: 'https, a public host name, the default port; {placeholders} may stay',
            maxLength: 1000,
            examples: ['https://api.example.com/v1/tides'],
          },
        },
        required: ['url'],
      },
      response: {
        200: json(answer, 'It was listed already and is up to date now'),
        201: json(answer, 'It is listed'),
        400: problemAnswer(
          'Not listed; `code`: `bad_parameter`, `url_not_public`, `https_only`, `own_origin`, `no_402`, `unreadable_challenge`, `not_payable_here`',
        ),
        404: problemAnswer('`host_not_found`: the host does not exist'),
        409: problemAnswer('`host_full`: its host has as many listings as one may have'),
        413: problemAnswer('More than 64 KiB'),
        429: problemAnswer(
          '`submit_limited` for a client, `host_limited` for the seller\u2019s host: wait for Retry-After',
        ),
        502: problemAnswer('`timeout`, `too_large` or `unreachable`: its server gave no answer that could be read'),
        503: problemAnswer('`market_full`, or `market_busy`: try again later'),
      },
    },
  };
}
