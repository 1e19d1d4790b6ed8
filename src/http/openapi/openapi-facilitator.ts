import { anyObject, integer, type Json, json, type Operation, object, text } from './openapi-shapes.ts';

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
const SUPPORTED = object({
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

/**
 * The terms of the scheme's own test vector, a proof of 2023: its key is 1 and its preimage is published. It shows the
 * form, and settles nothing any more.
 */
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

const descriptor = (operationId: string): Json => ({
  operationId,
  summary: 'What the facilitator does, its limits, and how much it has settled.',
  description:
    'It claims Lightning proofs once for any seller, who has been paid already and only wants to know that a proof is good and new. No account, no fee. ' +
    'The figures are those of the ledger at the time of the call.',
  response: { 200: json(DESCRIPTOR, 'The descriptor') },
});

/** The facilitator's routes: they keep x402's shapes for errors too. */
export const FACILITATOR_OPERATIONS: readonly Operation[] = [
  { method: 'GET', url: '/facilitator', schema: descriptor('facilitator') },
  { method: 'GET', url: '/v1/facilitator/lightning', schema: descriptor('facilitatorLightning') },
  {
    method: 'GET',
    url: '/facilitator/supported',
    schema: {
      operationId: 'facilitatorSupported',
      summary: 'Schemes and networks, in the form of x402 facilitators.',
      description:
        'A seller’s requirement must have one of these kinds, and its `extra` must name the same method and flow.',
      response: { 200: json(SUPPORTED, 'What is supported') },
    },
  },
  {
    method: 'POST',
    url: '/facilitator/settle',
    schema: {
      operationId: 'facilitatorSettle',
      summary: 'Checks a Lightning proof against a seller\u2019s requirements and claims it once.',
      description:
        'For any seller, without registration. A refused proof is 200 with `success: false` and the scheme\u2019s reason. Nothing moves: the sats are with the seller already. No preimage is kept.',
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
    },
  },
  {
    method: 'POST',
    url: '/facilitator/verify',
    schema: {
      operationId: 'facilitatorVerify',
      summary: 'Always refused: the flow of this scheme is settle, then serve.',
      description:
        'A check without a claim would let one proof buy twice. Call /facilitator/settle once the request is ready to be served.',
      response: {
        400: json(object({ isValid: { type: 'boolean' }, invalidReason: text, message: text }), 'Refused'),
      },
    },
  },
];
