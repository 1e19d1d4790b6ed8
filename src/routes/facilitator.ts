import type { FastifyInstance, FastifyReply } from 'fastify';
import { AppError } from '../errors.ts';
import { type Facilitator, SUPPORTED } from '../facilitator/facilitator.ts';
import { refusal, type SettleAnswer } from '../facilitator/settle.ts';
import { createAnswer, mountGet, sendAnswer } from '../http/answers.ts';
import { anyObject, integer, type Json, json, type Operation, object, text } from '../http/openapi/route.ts';
import { asAppError } from '../http/problems.ts';
import { clientKey } from '../lib/limits/count.ts';
import { jsonOrUndefined } from '../lib/untrusted.ts';

// The facilitator over HTTP: any seller claims a Lightning proof here, without registration.

const MAX_BODY_BYTES = 64 * 1024;
/** The supported kinds change with a deployment only. */
const SUPPORTED_MAX_AGE_SECONDS = 60;

const SUPPORTED_PATH = '/facilitator/supported';
const SETTLE_PATH = '/facilitator/settle';
const VERIFY_PATH = '/facilitator/verify';
const DESCRIPTOR_PATHS = ['/facilitator', '/v1/facilitator/lightning'];

const TOO_LARGE = new AppError(413, 'body_too_large', 'The body may have at most 64 KiB.');
/** The payment flow is "settle, then serve". So there is no verify step, and every verify call gets this answer. */
const NO_VERIFY = JSON.stringify({
  isValid: false,
  invalidReason: 'invalid_exact_lnbtc_payment_flow',
  message:
    'There is no verify step: the payment flow is upfront. Settle the proof by POST /facilitator/settle, and then ' +
    'serve.',
});

/** The routes have their own limits, so mount them outside the rate-limited groups. */
export function mountFacilitator(app: FastifyInstance, facilitator: Facilitator): void {
  mountDescriptions(app, facilitator);
  // Encapsulated, because the parser and the errors here have x402's shape and no other route shares them.
  app.register(async (scope) => {
    readAnythingAsJson(scope);
    scope.setErrorHandler((error, _request, reply) => send(reply, refusalOf(error)));
    mountSettle(scope, facilitator);
    scope.route({
      method: 'POST',
      url: VERIFY_PATH,
      // Answered in `onRequest`, so that the body is not read.
      onRequest: async (_request, reply) => sendJson(reply, 400, NO_VERIFY),
      handler: (_request, reply) => sendJson(reply, 400, NO_VERIFY),
    });
  });
}

function mountDescriptions(app: FastifyInstance, facilitator: Facilitator): void {
  const supported = createAnswer(JSON.stringify(SUPPORTED), SUPPORTED_MAX_AGE_SECONDS);
  mountGet(app, SUPPORTED_PATH, (request, reply) => sendAnswer(request, reply, supported));
  for (const url of DESCRIPTOR_PATHS)
    mountGet(app, url, async (_request, reply) => sendJson(reply, 200, JSON.stringify(await facilitator.descriptor())));
}

/** Size and limits are checked before the body is read, so that a refused call costs next to nothing. */
function mountSettle(scope: FastifyInstance, facilitator: Facilitator): void {
  scope.route({
    method: 'POST',
    url: SETTLE_PATH,
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

const SETTLEMENT = object(
  {
    success: { type: 'boolean' },
    errorReason: { ...text, description: 'The scheme\u2019s own word; only where success is false' },
    message: { ...text, description: 'Which member is wrong, and what mends it; only where success is false' },
    transaction: { ...text, description: 'The payment hash; empty where success is false' },
    network: text,
  },
  ['success', 'transaction', 'network'],
);

const said = (description: string): Json => ({ ...text, description });
const count = (description: string): Json => ({ ...integer, minimum: 0, description });

const DESCRIPTOR = object({
  url: said('The facilitator’s address'),
  scheme: said('x402’s scheme: exact'),
  networks: { type: 'array', items: text, description: 'The Lightning networks that it claims proofs of' },
  spec: said('The scheme’s page'),
  registration: { ...said('Sellers need none'), enum: ['none'] },
  routes: object({ supported: said('Method and path of the list'), settle: said('Method and path of a claim') }),
  limits: object({
    maxTimeoutSeconds: count('The longest that a requirement may let a buyer take, in seconds'),
    perMinute: count('Settle calls of one client a minute'),
    dailyCap: count('Claims of all clients on one UTC day'),
    settledToday: count('How many of them were made today'),
  }),
  settled: object({
    total: count('Claims since the start of the ledger'),
    today: count('Claims on this UTC day'),
    nodes: count('Distinct nodes that were paid'),
    forOurOwnNode: count('Claims of payments to this service’s own node'),
  }),
  note: said('The rules in words'),
});

const KIND = object({
  x402Version: { type: 'integer', enum: [2] },
  scheme: { ...text, enum: ['exact'] },
  network: said('A Lightning network'),
  extra: object({
    assetTransferMethod: { ...text, enum: ['bolt11'] },
    paymentFlow: { ...text, enum: ['upfront'], description: 'The buyer pays before the seller serves' },
  }),
});
const SUPPORTED_SCHEMA = object({
  kinds: { type: 'array', items: KIND, description: 'What it settles, one for each network' },
  extensions: { type: 'array', items: text, description: 'None' },
  signers: { ...anyObject, description: 'None: nothing is signed here' },
});

const REQUIREMENT = {
  ...object({
    scheme: { ...text, enum: ['exact'] },
    network: said('A Lightning network of the list of supported ones'),
    asset: { ...text, enum: ['BTC'] },
    amount: said('Millisatoshis, a decimal integer'),
    payTo: said('The public key of the seller’s node, in hex'),
    maxTimeoutSeconds: count('How long the buyer may take'),
    extra: {
      ...object({
        assetTransferMethod: { ...text, enum: ['bolt11'] },
        paymentFlow: { ...text, enum: ['upfront'] },
        invoice: said('The BOLT11 invoice'),
        requestHash: said('SHA-256 of the bound request, in hex'),
        requestBindingProfile: { ...text, enum: ['http:1', 'mcp:1'] },
        requestBindingParams: { ...anyObject, description: 'What the profile needs to bind the request again' },
      }),
      description: 'As the seller offered it',
    },
  }),
  description: 'The seller’s own requirement, against which the proof is checked',
};
const PAYLOAD = {
  ...object({
    x402Version: { type: 'integer', enum: [2] },
    accepted: { ...anyObject, description: 'The offer as the buyer accepted it: it must equal paymentRequirements' },
    payload: object({ preimage: said('The preimage of the paid invoice: 64 hex characters') }),
  }),
  description: 'The decoded PAYMENT-SIGNATURE of the buyer, unchanged',
};

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

const operation = (method: Operation['method'], url: string, schema: Json): Operation => ({
  method,
  url,
  schema: { ...schema, tags: ['facilitator'] },
});

const descriptor = (url: string, operationId: string): Operation =>
  operation('GET', url, {
    operationId,
    summary: 'What the facilitator does, its limits, and how much it has settled.',
    description:
      'It claims Lightning proofs once for any seller, who has been paid already and only wants to know that a proof ' +
      'is good and new. No account, no fee. The figures are those of the ledger at the time of the call.',
    response: { 200: json(DESCRIPTOR, 'The descriptor') },
  });

export const FACILITATOR_OPERATIONS: readonly Operation[] = [
  descriptor('/facilitator', 'facilitator'),
  descriptor('/v1/facilitator/lightning', 'facilitatorLightning'),
  operation('GET', SUPPORTED_PATH, {
    operationId: 'facilitatorSupported',
    summary: 'Schemes and networks, in the form of x402 facilitators.',
    description:
      'A seller’s requirement must have one of these kinds, and its `extra` must name the same method and flow.',
    response: { 200: json(SUPPORTED_SCHEMA, 'What is supported') },
  }),
  operation('POST', SETTLE_PATH, {
    operationId: 'facilitatorSettle',
    summary: 'Checks a Lightning proof against a seller\u2019s requirements and claims it once.',
    description:
      'For any seller, without registration. A refused proof is 200 with `success: false` and the scheme\u2019s ' +
      'reason. Nothing moves: the sats are with the seller already. No preimage is kept.',
    body: {
      ...object({
        x402Version: { type: 'integer', enum: [2] },
        paymentPayload: PAYLOAD,
        paymentRequirements: REQUIREMENT,
      }),
      examples: [PROOF_EXAMPLE],
    },
    response: {
      200: json({ ...SETTLEMENT, examples: [SETTLEMENT_EXAMPLE] }, 'Claimed, or refused with a reason'),
      400: json(
        SETTLEMENT,
        '`invalid_request`: the body, its payload or its requirements are no object, or x402Version is not 2',
      ),
      413: json(SETTLEMENT, 'More than 64 KiB'),
      429: json(SETTLEMENT, '`rate_limited`: wait for Retry-After'),
      503: json(SETTLEMENT, '`daily_cap_reached`, or `replay_store_unavailable`: settle the same proof again'),
    },
  }),
  operation('POST', VERIFY_PATH, {
    operationId: 'facilitatorVerify',
    summary: 'Always refused: the flow of this scheme is settle, then serve.',
    description:
      'A check without a claim would let one proof buy twice. Call /facilitator/settle once the request is ready to ' +
      'be served.',
    response: {
      400: json(object({ isValid: { type: 'boolean' }, invalidReason: text, message: text }), 'Refused'),
    },
  }),
];
