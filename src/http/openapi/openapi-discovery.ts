import { integer, type Json, json, type Operation, object, text } from './openapi-shapes.ts';
import { reference } from './openapi-shared.ts';

const described = (type: string, description: string): Json => ({ type, description });
const listOf = (items: Json, description: string): Json => ({ type: 'array', items, description });
const SOURCE = { type: 'string', enum: ['own', 'market', 'catalogue'] };
const PRICE = { type: 'string', pattern: '^\\d+(\\.\\d+)?$' };

const PARAM = object({
  name: text,
  in: {
    ...described('string', '`body`: a field of the JSON body of a POST'),
    enum: ['path', 'query', 'body', 'header'],
  },
  type: described('string', 'JSON Schema’s word; `any` when the seller says none'),
  description: text,
  required: { type: 'boolean' },
  example: { description: 'null when the seller gives none' },
});

/** One payable route in a search result. */
export const ENTRY = object({
  url: described('string', 'A {placeholder} in it must be replaced'),
  method: { type: 'string', enum: ['GET', 'POST'] },
  priceUsd: { ...PRICE, description: 'What the seller asked when last seen' },
  name: described('string', 'The seller’s own name of the route'),
  label: described('string', 'A short name for people'),
  description: text,
  params: { type: 'array', items: PARAM },
  payTo: described('string', 'Address of the seller'),
  host: text,
  network: described('string', 'CAIP-2; where it is paid here'),
  rail: {
    ...described('string', '`gateway`: the buyer needs a gateway deposit; `channel`: a payment channel'),
    enum: ['direct', 'gateway', 'channel'],
  },
  direct: {
    ...object({ url: text, priceUsd: PRICE }),
    type: ['object', 'null'],
    description: 'How a gateway entry can also be paid plainly on the chain; null when it cannot',
  },
  body: { description: 'An example of the JSON body of a POST; else null' },
  source: SOURCE,
  category: text,
  site: described('string', 'The seller’s web site'),
  networks: listOf(text, 'All networks that the seller accepts'),
  plainNetworks: listOf(text, 'Those payable without the gateway'),
  online: described(
    'boolean',
    'own: the service is ready; market: by the last hourly calls; catalogue: it is listed there, and was not called',
  ),
  score: described('number', 'Relevance; only comparable within one answer, 0 without a query'),
});

const RESULT = object({
  query: text,
  network: described('string', 'CAIP-2 of the settlement chain'),
  count: described('integer', 'Entries in `results`'),
  searched: {
    ...object({ ownRoutes: integer, marketListings: integer, catalogue: integer }),
    description: 'How many entries of each source were looked through; what two sources list counts for the better one',
  },
  catalogueReadAt: {
    type: ['integer', 'null'],
    description: 'Unix seconds of the last catalogue read; null before the first',
  },
  sources: { ...object({ own: text, market: text, catalogue: text }), description: 'What each source is, in words' },
  results: { type: 'array', items: reference('schemas', 'Entry') },
  note: text,
});

const QUERY = {
  type: 'object',
  properties: {
    q: { ...text, maxLength: 200, default: '', description: 'What is looked for, in any words; empty: everything' },
    maxPriceUsd: { ...PRICE, description: 'The highest price of an entry', examples: ['0.01'] },
    limit: { ...integer, minimum: 1, maximum: 50, default: 10, description: 'How many entries at most' },
    offset: { ...integer, minimum: 0, maximum: 100_000, default: 0, description: 'How many to leave out first' },
    source: { ...SOURCE, description: 'Of this source alone' },
    seller: { ...text, maxLength: 253, description: 'Of this seller alone: its address (`payTo`) or its host' },
    category: { ...text, maxLength: 60, description: 'Of this category alone' },
    network: {
      ...text,
      maxLength: 80,
      description: 'Accepting payments on this network too',
      examples: ['eip155:8453'],
    },
  },
  required: [],
};

/** The search’s operation. */
export const DISCOVERY_OPERATIONS: readonly Operation[] = [
  {
    method: 'GET',
    url: '/v1/market/search',
    schema: {
      operationId: 'marketSearch',
      tags: ['market'],
      summary: 'Search of payable routes: this service’s own, its market, and a third-party catalogue; free.',
      description:
        'The best match first; equally good ones by price, then own before market before catalogue. Without `q` everything by price. Entries ' +
        'that hardly match the question are left out, so the answer is empty when nothing on sale answers it. A route that two sources list under one host and path is listed once. ' +
        'Unknown and repeated parameters are refused.',
      querystring: QUERY,
      response: {
        200: json(RESULT, 'What was found'),
        400: {
          description: 'A parameter is bad; `errors` names it.',
          content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
        },
      },
    },
  },
];
