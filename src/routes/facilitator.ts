import type { FastifyInstance, FastifyReply } from 'fastify';
import { z } from 'zod';
import { AppError } from '../errors.ts';
import { type Facilitator, SUPPORTED } from '../facilitator/facilitator.ts';
import { refusal, type SettleAnswer } from '../facilitator/settle.ts';
import { createAnswer, sendAnswer } from '../http/answers.ts';
import { always, anyMembers, count, defineRoute, inJson, said, serve } from '../http/openapi/route.ts';
import { asAppError } from '../http/problems.ts';
import { clientKey } from '../lib/limits/count.ts';
import { jsonOrUndefined } from '../lib/untrusted.ts';

// The facilitator over HTTP: any seller claims a Lightning proof here, without registration.

const bolt11 = z.enum(['bolt11']);

const KIND = z.object({
  x402Version: always(2),
  scheme: z.enum(['exact']),
  network: said('A Lightning network'),
  extra: z.object({
    assetTransferMethod: bolt11,
    paymentFlow: z.enum(['upfront']).meta({ description: 'The buyer pays before the seller serves' }),
  }),
});

const LIST = defineRoute('GET', '/facilitator/supported', {
  id: 'facilitatorSupported',
  tag: 'facilitator',
  summary: 'Schemes and networks, in the form of x402 facilitators.',
  description:
    'A seller’s requirement must have one of these kinds, and its `extra` must name the same method and flow.',
  answers: {
    200: inJson(
      z.object({
        kinds: z.array(KIND).meta({ description: 'What it settles, one for each network' }),
        extensions: z.array(z.string()).meta({ description: 'None' }),
        signers: anyMembers.meta({ description: 'None: nothing is signed here' }),
      }),
      'What is supported',
    ),
  },
});

const DESCRIPTOR = z.object({
  url: said('The facilitator’s address'),
  scheme: said('x402’s scheme: exact'),
  networks: z.array(z.string()).meta({ description: 'The Lightning networks that it claims proofs of' }),
  spec: said('The scheme’s page'),
  registration: z.enum(['none']).meta({ description: 'Sellers need none' }),
  routes: z.object({ supported: said('Method and path of the list'), settle: said('Method and path of a claim') }),
  limits: z.object({
    maxTimeoutSeconds: count('The longest that a requirement may let a buyer take, in seconds'),
    perMinute: count('Settle calls of one client a minute'),
    dailyCap: count('Claims of all clients on one UTC day'),
    settledToday: count('How many of them were made today'),
  }),
  settled: z.object({
    total: count('Claims since the start of the ledger'),
    today: count('Claims on this UTC day'),
    nodes: count('Distinct nodes that were paid'),
    forOurOwnNode: count('Claims of payments to this service’s own node'),
  }),
  note: said('The rules in words'),
});

const descriptor = (url: `/${string}`, id: string) =>
  defineRoute('GET', url, {
    id,
    tag: 'facilitator',
    summary: 'What the facilitator does, its limits, and how much it has settled.',
    description:
      'It claims Lightning proofs once for any seller, who has been paid already and only wants to know that a proof ' +
      'is good and new. No account, no fee. The figures are those of the ledger at the time of the call.',
    answers: { 200: inJson(DESCRIPTOR, 'The descriptor') },
  });

const DESCRIPTORS = [
  descriptor('/facilitator', 'facilitator'),
  descriptor('/v1/facilitator/lightning', 'facilitatorLightning'),
];

const SETTLEMENT = z.object({
  success: z.boolean(),
  errorReason: said('The scheme\u2019s own word; only where success is false').optional(),
  message: said('Which member is wrong, and what mends it; only where success is false').optional(),
  transaction: said('The payment hash; empty where success is false'),
  network: z.string(),
});

const REQUIREMENT = z
  .object({
    scheme: z.enum(['exact']),
    network: said('A Lightning network of the list of supported ones'),
    asset: z.enum(['BTC']),
    amount: said('Millisatoshis, a decimal integer'),
    payTo: said('The public key of the seller’s node, in hex'),
    maxTimeoutSeconds: count('How long the buyer may take'),
    extra: z
      .object({
        assetTransferMethod: bolt11,
        paymentFlow: z.enum(['upfront']),
        invoice: said('The BOLT11 invoice'),
        requestHash: said('SHA-256 of the bound request, in hex'),
        requestBindingProfile: z.enum(['http:1', 'mcp:1']),
        requestBindingParams: anyMembers.meta({ description: 'What the profile needs to bind the request again' }),
      })
      .meta({ description: 'As the seller offered it' }),
  })
  .meta({ description: 'The seller’s own requirement, against which the proof is checked' });

const PAYLOAD = z
  .object({
    x402Version: always(2),
    accepted: anyMembers.meta({
      description: 'The offer as the buyer accepted it: it must equal paymentRequirements',
    }),
    payload: z.object({ preimage: said('The preimage of the paid invoice: 64 hex characters') }),
  })
  .meta({ description: 'The decoded PAYMENT-SIGNATURE of the buyer, unchanged' });

/** The terms of the scheme's test vector, a proof of 2023 whose key and preimage are published: it settles nothing. */
const TERMS = {
  scheme: 'exact',
  network: 'lnbtc:000000000019d6689c085ae165831e93',
  asset: 'BTC',
  amount: '25000',
  payTo: '0279be667ef9dcbbac55a06295ce870b07029bfcdb2dce28d959f2815b16f81798',
  maxTimeoutSeconds: 300,
  extra: {
    assetTransferMethod: 'bolt11',
    paymentFlow: 'upfront',
    invoice:
      'lnbc250n1pj48ugqpp54y3u9s8ylemsv8l3ewyzzu0klhujvuvmkl6llchq23vy8rzjsf0qsp5zyg3zyg3zyg3zyg3zyg3zyg3zy' +
      'g3zyg3zyg3zyg3zyg3zyg3zygshp5p4nz8am4uqj4q8a87z3sk4x6yk4dv2mvel34epw68qqkwy0xcqvqxqzfvcqpjr4rx6ls6j5' +
      'rpwknuea64evlk7yfx56wmqcer5eerekdsn9tlv6v4ex9mlz5dtm9qapl3svwlqcf7837dmjkru9z9w4h2rvm0md52w2sqxrwu5f',
    requestHash: '0d6623f775e025501fa7f0a30b54da25aad62b6ccfe35c85da38016711e6c018',
    requestBindingProfile: 'http:1',
    requestBindingParams: { headers: [] },
  },
};
const PROOF_EXAMPLE = {
  x402Version: 2,
  paymentPayload: {
    x402Version: 2,
    accepted: TERMS,
    payload: { preimage: '0001020304050607080900010203040506070809000102030405060708090102' },
  },
  paymentRequirements: TERMS,
};
const SETTLEMENT_EXAMPLE = {
  success: true,
  transaction: 'a923c2c0e4fe77061ff1cb882171f6fdf926719bb7f5ffe2e05458438c52825e',
  network: TERMS.network,
};

const SETTLE = defineRoute('POST', '/facilitator/settle', {
  id: 'facilitatorSettle',
  tag: 'facilitator',
  summary: 'Checks a Lightning proof against a seller\u2019s requirements and claims it once.',
  description:
    'For any seller, without registration. A refused proof is 200 with `success: false` and the scheme\u2019s ' +
    'reason. Nothing moves: the sats are with the seller already. No preimage is kept.',
  body: z
    .object({ x402Version: always(2), paymentPayload: PAYLOAD, paymentRequirements: REQUIREMENT })
    .meta({ examples: [PROOF_EXAMPLE] }),
  answers: {
    200: inJson(SETTLEMENT.meta({ examples: [SETTLEMENT_EXAMPLE] }), 'Claimed, or refused with a reason'),
    400: inJson(
      SETTLEMENT,
      '`invalid_request`: the body, its payload or its requirements are no object, or x402Version is not 2',
    ),
    413: inJson(SETTLEMENT, 'More than 64 KiB'),
    429: inJson(SETTLEMENT, '`rate_limited`: wait for Retry-After'),
    503: inJson(SETTLEMENT, '`daily_cap_reached`, or `replay_store_unavailable`: settle the same proof again'),
  },
});

const VERIFY = defineRoute('POST', '/facilitator/verify', {
  id: 'facilitatorVerify',
  tag: 'facilitator',
  summary: 'Always refused: the flow of this scheme is settle, then serve.',
  description:
    'A check without a claim would let one proof buy twice. Call /facilitator/settle once the request is ready to ' +
    'be served.',
  answers: {
    400: inJson(z.object({ isValid: z.boolean(), invalidReason: z.string(), message: z.string() }), 'Refused'),
  },
});

export const FACILITATOR_ROUTES = [...DESCRIPTORS, LIST, SETTLE, VERIFY];

/** The supported kinds change with a deployment only. */
const SUPPORTED_MAX_AGE_SECONDS = 60;
/** The payment flow is "settle, then serve". So there is no verify step, and every verify call gets this answer. */
const NO_VERIFY = JSON.stringify({
  isValid: false,
  invalidReason: 'invalid_exact_lnbtc_payment_flow',
  message:
    'There is no verify step: the payment flow is upfront. Settle the proof by POST /facilitator/settle, and then ' +
    'serve.',
});

/** The routes have limits of their own. */
export async function facilitatorRoutes(
  app: FastifyInstance,
  { facilitator }: { facilitator: Facilitator },
): Promise<void> {
  mountDescriptions(app, facilitator);
  // Encapsulated, because the parser and the errors here have x402's shape and no other route shares them.
  app.register(async (scope) => {
    readAnythingAsJson(scope);
    scope.setErrorHandler((error, _request, reply) => send(reply, refusalOf(error)));
    mountSettle(scope, facilitator);
    serve(scope, VERIFY, {
      // Answered in `onRequest`, so that the body is not read.
      onRequest: async (_request, reply) => sendJson(reply, 400, NO_VERIFY),
      handler: (_request, reply) => sendJson(reply, 400, NO_VERIFY),
    });
  });
}

function mountDescriptions(app: FastifyInstance, facilitator: Facilitator): void {
  const supported = createAnswer(JSON.stringify(SUPPORTED), SUPPORTED_MAX_AGE_SECONDS);
  serve(app, LIST, (request, reply) => sendAnswer(request, reply, supported));
  for (const route of DESCRIPTORS)
    serve(app, route, async (_request, reply) => sendJson(reply, 200, JSON.stringify(await facilitator.descriptor())));
}

const MAX_BODY_BYTES = 64 * 1024;
const TOO_LARGE = new AppError(413, 'body_too_large', 'The body may have at most 64 KiB.');

/** Size and limits are checked before the body is read, so that a refused call costs next to nothing. */
function mountSettle(scope: FastifyInstance, facilitator: Facilitator): void {
  serve(scope, SETTLE, {
    bodyLimit: MAX_BODY_BYTES,
    onRequest: async (request, reply) => {
      if (Number(request.headers['content-length']) > MAX_BODY_BYTES) throw TOO_LARGE;
      const refused = await facilitator.admit(clientKey(request.ip));
      return refused ? send(reply, refused) : undefined;
    },
    handler: async (request, reply) =>
      send(reply, await facilitator.settleAdmitted(request.body, clientKey(request.ip))),
  });
}

/** A seller's client may forget the content type. Text that is no JSON becomes undefined: its error would quote it. */
function readAnythingAsJson(scope: FastifyInstance): void {
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser('*', { parseAs: 'string' }, (_request, text, done) => {
    done(null, jsonOrUndefined(String(text)));
  });
}

/** Puts a refusal by the framework into x402's shape. A bug of ours goes on to the service's handler, which logs it. */
function refusalOf(error: unknown): SettleAnswer {
  const { status } = asAppError(error);
  const isCallers = status < 500 || (error as { statusCode?: unknown }).statusCode === 400;
  if (!isCallers) throw error;
  if (status === 413) return refusal(status, 'body_too_large');
  return status === 414 ? refusal(status, 'url_too_long') : refusal(400, 'invalid_request');
}

function send(reply: FastifyReply, { status, body, retryAfterSeconds }: SettleAnswer): FastifyReply {
  if (retryAfterSeconds !== undefined) reply.header('retry-after', String(retryAfterSeconds));
  return sendJson(reply, status, JSON.stringify(body));
}

function sendJson(reply: FastifyReply, status: number, text: string): FastifyReply {
  reply.header('cache-control', 'no-store');
  reply.header('content-type', 'application/json; charset=utf-8');
  return reply.code(status).send(text);
}
