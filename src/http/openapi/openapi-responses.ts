import { z } from 'zod';
import type { Endpoint } from '../../catalogue/endpoint.ts';
import type { Mount } from '../../catalogue/paths.ts';
import { LIGHTNING_CHALLENGE } from './openapi-lightning.ts';
import type { Json } from './openapi-shapes.ts';
import { toJsonSchema } from './param-docs.ts';

const PROBLEM_EXAMPLE = {
  type: 'about:blank',
  title: 'Bad Request',
  status: 400,
  detail: 'gas: a whole number from 1 to 30000000',
  instance: '/v1/fees/estimate',
  code: 'bad_parameter',
  charged: false,
  requestId: 'Qm9vdFByZWZpeA-2s',
  errors: [{ path: 'gas', message: 'a whole number from 1 to 30000000' }],
};

/** The component schemas that operations refer to. */
export const COMPONENT_SCHEMAS: Json = {
  Problem: {
    ...toJsonSchema(
      z.object({
        type: z.string(),
        title: z.string().meta({ description: 'The status in words' }),
        status: z.int(),
        detail: z.string().meta({ description: 'What the caller can do about it' }),
        instance: z.string().meta({ description: 'The path of the request' }),
        code: z.string().meta({ description: 'Stable, in snake_case; meant for programs' }),
        charged: z.union([z.boolean(), z.literal('unknown')]).meta({
          description:
            'false: no money moved or will move. true: the payment was taken, and its answer is no longer kept. "unknown": a settlement has no final answer yet, or the payment was not looked at; present the same one again',
        }),
        requestId: z.string().meta({ description: 'The same as X-Request-Id' }),
        errors: z
          .array(z.object({ path: z.string(), message: z.string() }))
          .optional()
          .meta({ description: 'Each parameter at fault' }),
      }),
      'input',
    ),
    description: 'RFC 9457 problem details; routes may add members',
    examples: [PROBLEM_EXAMPLE],
  },
  Hint: {
    type: 'object',
    properties: {
      hint: {
        type: 'string',
        description: 'What is wrong, or what the route sells; the price; what to do next; where to read more',
      },
    },
    required: ['hint'],
    additionalProperties: false,
  },
  LightningChallenge: LIGHTNING_CHALLENGE,
};

const PROBLEMS: Record<number, string> = {
  400: 'A parameter is bad; `errors` names it. Never charged.',
  404: 'What was asked for does not exist. Never charged.',
  429: 'Too many requests; wait for Retry-After. Nothing is charged for it; a payment that came with it was perhaps not looked at (`charged` is then "unknown"): present the same one again.',
  500: 'A fault of the service. Never charged.',
  502: 'A source of the data failed. Never charged.',
  503: 'Not possible now, or a settlement without a final answer (`charged` is then "unknown"). Repeat the same request.',
};

const REQUEST_ID = { type: 'string', description: 'Names this answer; quote it when you report something' };
const RECEIPT = 'Base64url JSON: MPP’s receipt';
const PAYMENT_RECEIPT = { type: 'string', description: `${RECEIPT}, where the payment came over MPP` };
const RETRY_AFTER = { type: 'integer', description: 'Seconds to wait' };

/** A problem response, as every operation may give it. */
function problem(status: number, description: string): Json {
  const waits = status === 429 || status === 503;
  return {
    description,
    headers: { 'X-Request-Id': REQUEST_ID, ...(waits ? { 'Retry-After': RETRY_AFTER } : {}) },
    content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
  };
}

function success(endpoint: Endpoint<never>, mount: Mount): Json {
  const paid = mount !== 'free';
  const what = mount === 'lightning' ? 'the payment hash' : 'its transaction hash';
  const receipt = {
    ...(mount !== 'mpp' && {
      'PAYMENT-RESPONSE': { type: 'string', description: `Base64 JSON: the settlement with ${what}` },
    }),
    ...(mount === 'lightning' && { 'Payment-Receipt': PAYMENT_RECEIPT }),
    ...(mount === 'mpp' && { 'Payment-Receipt': { ...PAYMENT_RECEIPT, description: `${RECEIPT} with ${what}` } }),
  };
  const validators = {
    ETag: { type: 'string', description: 'Send it back in If-None-Match and get 304 while nothing changed' },
  };
  return {
    description: endpoint.summary,
    headers: { 'X-Request-Id': REQUEST_ID, ...(paid ? receipt : validators) },
    content: {
      'application/json': { schema: toJsonSchema(endpoint.result, 'output'), example: endpoint.example.result },
    },
  };
}

/** The endpoint's own reply with another status; a problem when there is no reply. */
function badNews(endpoint: Endpoint<never>): Json {
  const { description, headers, content } = problem(503, 'The same body as with 200: its `status` says what is wrong.');
  return {
    description,
    headers,
    content: { 'application/json': { schema: toJsonSchema(endpoint.result, 'output') }, ...(content as Json) },
  };
}

const UNPAID: Json = {
  description: 'Not paid, or the payment was refused: `error` in the header says why. Nothing was charged.',
  headers: {
    'PAYMENT-REQUIRED': {
      type: 'string',
      description: 'Base64 JSON of x402 version 2: `accepts` holds what to pay, `error` why a payment was refused',
    },
    'X-Request-Id': REQUEST_ID,
  },
  content: { 'application/json': { schema: { $ref: '#/components/schemas/Hint' } } },
};

const UNPAID_LIGHTNING: Json = {
  description:
    'Not paid: the answer exists and is sold for the invoice in it. Or a proof was refused: `error` says why.',
  headers: {
    ...(UNPAID.headers as Json),
    'WWW-Authenticate': {
      type: 'string',
      description: 'The same invoice in two more protocols, a line each: L402, and `Payment` (MPP), method `lightning`',
    },
  },
  content: { 'application/json': { schema: { $ref: '#/components/schemas/LightningChallenge' } } },
};

const UNPAID_MPP: Json = {
  ...problem(402, 'Not paid, or the payment was refused: `code` says why. Nothing was charged.'),
  headers: {
    'WWW-Authenticate': { type: 'string', description: '`Payment` (MPP): method `evm`, intent `charge`' },
    'X-Request-Id': REQUEST_ID,
  },
};

const UNPAIDS: Record<Exclude<Mount, 'free'>, Json> = { paid: UNPAID, lightning: UNPAID_LIGHTNING, mpp: UNPAID_MPP };

const GONE =
  'The payment was taken, and its answer was not fetched while it was kept (`charged` is true). Do not pay again: ask the seller.';
const IN_FLIGHT = 'This payment is being worked on, or its identifier came with another payload. Wait for Retry-After.';

/** Every answer that a catalogue entry can give, as OpenAPI responses. */
export function describeResponses(endpoint: Endpoint<never>, mount: Mount): Json {
  const problems = Object.entries(PROBLEMS).map(([status, text]) => [status, problem(Number(status), text)]);
  return {
    200: success(endpoint, mount),
    ...Object.fromEntries(problems),
    ...(mount === 'free' ? {} : { 402: UNPAIDS[mount], 409: problem(409, IN_FLIGHT) }),
    ...(mount === 'paid' || mount === 'mpp' ? { 410: problem(410, GONE) } : {}),
    ...(endpoint.reportsFault ? { 503: badNews(endpoint) } : {}),
  };
}
