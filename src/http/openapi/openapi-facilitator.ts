import { integer, type Json, json, type Operation, object, text } from './openapi-shapes.ts';

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

const DESCRIPTOR = object({
  url: text,
  scheme: text,
  networks: { type: 'array', items: text },
  spec: text,
  registration: { ...text, enum: ['none'] },
  routes: object({ supported: text, settle: text }),
  limits: object({ maxTimeoutSeconds: integer, perMinute: integer, dailyCap: integer, settledToday: integer }),
  settled: object({ total: integer, today: integer, nodes: integer, forOurOwnNode: integer }),
  note: text,
});

const descriptor = (operationId: string): Json => ({
  operationId,
  summary: 'What the facilitator does, its limits, and how much it has settled.',
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
      response: { 200: json(object({ kinds: { type: 'array', items: { type: 'object' } } }), 'What is supported') },
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
      body: object({
        x402Version: { type: 'integer', enum: [2] },
        paymentPayload: { type: 'object' },
        paymentRequirements: { type: 'object' },
      }),
      response: {
        200: json(SETTLEMENT, 'Claimed, or refused with a reason'),
        400: json(
          SETTLEMENT,
          '`invalid_request`: the body, its payload or its requirements are no object, or x402Version is not 2',
        ),
        413: json(SETTLEMENT, 'More than 64 KiB'),
        429: json(SETTLEMENT, '`rate_limited`: wait for Retry-After'),
        503: json(SETTLEMENT, '`daily_cap_reached`, or `replay_store_unavailable`: nothing was claimed'),
      },
    },
  },
  {
    method: 'POST',
    url: '/facilitator/verify',
    schema: {
      operationId: 'facilitatorVerify',
      summary: 'Always refused: the flow of this scheme is settle, then serve.',
      response: {
        400: json(object({ isValid: { type: 'boolean' }, invalidReason: text, message: text }), 'Refused'),
      },
    },
  },
];
