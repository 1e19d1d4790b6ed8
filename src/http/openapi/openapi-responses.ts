import type { Endpoint } from '../../catalogue/endpoint.ts';
import type { Mount } from '../../catalogue/paths.ts';
import { type Json, object } from './openapi-shapes.ts';
import { answerName, problemName, REQUEST_ID_HEADER, RETRY_AFTER_HEADER, reference } from './openapi-shared.ts';

/** The problems that every route of the catalogue may answer, and the components that describe them. */
const PROBLEMS: readonly (readonly [status: number, name: string, description: string])[] = [
  [400, 'BadParameter', 'A parameter is bad; `errors` names it. Not charged, unless `charged` is "unknown".'],
  [
    404,
    'NotFound',
    'What was asked for does not exist. Not charged, unless `charged` is "unknown": present the same payment again.',
  ],
  [
    429,
    'TooManyRequests',
    'Too many requests; wait for Retry-After. Nothing is charged for it; a payment that came with it was perhaps not looked at (`charged` is then "unknown"): present the same one again.',
  ],
  [500, 'Fault', 'A fault of the service. Not charged, unless `charged` is "unknown": present the same payment again.'],
  [
    502,
    'BadSource',
    'A source of the data failed. Not charged, unless `charged` is "unknown": present the same payment again.',
  ],
  [
    503,
    'NotNow',
    'Not possible now, or an outcome of the payment that is not known yet (`charged` is then "unknown"). Repeat the same request.',
  ],
];

const RECEIPT = 'Base64url JSON: MPP’s receipt';
const text = (description: string): Json => ({ description, schema: { type: 'string' } });

const PROBLEM = reference('schemas', 'Problem');

/** A problem response, as every operation may give it. */
function problem(status: number, description: string, schema = PROBLEM): Json {
  const waits = status === 429 || status === 503;
  return {
    description,
    headers: { ...REQUEST_ID_HEADER, ...(waits ? RETRY_AFTER_HEADER : {}) },
    content: { 'application/problem+json': { schema } },
  };
}

/** The statuses whose problems have the endpoint's own members. Those members are missing when the service itself ran out of time. */
const TELLING = [404, 502];

function problemOf(endpoint: Endpoint<never>, [status, name, description]: (typeof PROBLEMS)[number]): Json {
  if (!endpoint.problemMembers || !TELLING.includes(status)) return reference('responses', name);
  return problem(status, description, { anyOf: [reference('schemas', problemName(endpoint)), PROBLEM] });
}

function success(endpoint: Endpoint<never>, mount: Mount): Json {
  return {
    description: endpoint.summary,
    headers: { ...REQUEST_ID_HEADER, ...HEADERS[mount] },
    content: { 'application/json': { schema: reference('schemas', answerName(endpoint)) } },
  };
}

/** The endpoint's own reply with another status; a problem when there is no reply. */
function badNews(endpoint: Endpoint<never>): Json {
  const { headers, content } = problem(503, '');
  const own = { 'application/json': { schema: reference('schemas', answerName(endpoint)) } };
  return {
    description: 'The same body as with 200: its `status` says what is wrong.',
    headers,
    content: { ...own, ...(content as Json) },
  };
}

/** The headers of an answer, by the routes under which it is sold. */
const HEADERS: Record<Mount, Json> = {
  free: { ETag: text('Send it back in If-None-Match and get 304 while nothing changed') },
  paid: { 'PAYMENT-RESPONSE': text('Base64 JSON: the settlement with its transaction hash') },
  lightning: {
    'PAYMENT-RESPONSE': text('Base64 JSON: the settlement with the payment hash'),
    'Payment-Receipt': text(`${RECEIPT}, where the payment came over MPP`),
  },
  mpp: { 'Payment-Receipt': text(`${RECEIPT} with its transaction hash`) },
};

const PAYMENT_REQUIRED = text(
  'Base64 JSON of x402 version 2: `accepts` holds what to pay, `error` why a payment was refused',
);

const UNPAID: Json = {
  description:
    'Not paid, or the payment was refused: `error` in the header says why. Nothing was charged for this request.',
  headers: { 'PAYMENT-REQUIRED': PAYMENT_REQUIRED, ...REQUEST_ID_HEADER },
  content: { 'application/json': { schema: reference('schemas', 'Hint') } },
};

const UNPAID_LIGHTNING: Json = {
  description:
    'Not paid: the answer exists and is sold for the invoice in it. Or a proof was refused: `error` says why.',
  headers: {
    ...(UNPAID.headers as Json),
    'WWW-Authenticate': text(
      'The same invoice in two more protocols, a line each: L402, and `Payment` (MPP), method `lightning`',
    ),
  },
  content: { 'application/json': { schema: reference('schemas', 'LightningChallenge') } },
};

/** The problem of MPP's own specification. Whether the refused payment can still move money is not known, so it has no `charged`. */
const PAYMENT_PROBLEM = object({
  type: { type: 'string', description: 'MPP’s type of the problem, below https://paymentauth.org/problems/' },
  title: { type: 'string' },
  status: { type: 'integer', const: 402 },
  detail: { type: 'string', description: 'Why, the price, and what to do next' },
  code: { type: 'string', description: 'The reason in this service’s own words; `payment_required` without a payment' },
  challengeId: { type: 'string', description: 'The `id` of the challenge in WWW-Authenticate' },
});

const UNPAID_MPP: Json = {
  ...problem(
    402,
    'Not paid, or the payment was refused: `code` says why. Nothing was charged for this request.',
    PAYMENT_PROBLEM,
  ),
  headers: { 'WWW-Authenticate': text('`Payment` (MPP): method `evm`, intent `charge`'), ...REQUEST_ID_HEADER },
};

const UNPAID_NAMES = { paid: 'Unpaid', lightning: 'UnpaidLightning', mpp: 'UnpaidMpp' } as const;

const GONE_TEXT =
  'The payment was taken, and its answer was not fetched while it was kept (`charged` is true). Do not pay again: ask the seller.';
const GONE: Json = {
  ...problem(410, GONE_TEXT),
  headers: {
    'PAYMENT-RESPONSE': text('In a payment channel: base64 JSON, the receipt with the charges of the channel'),
    ...REQUEST_ID_HEADER,
  },
};
const IN_FLIGHT = 'This payment is being worked on, or its identifier came with another payload. Wait for Retry-After.';

/** What the service answers before any route looks at the request: the refusals of its method and of its size. */
const UNREAD: readonly (readonly [status: number, name: string, description: string])[] = [
  [405, 'MethodNotAllowed', 'The path has no such method; `Allow` names those that it has. Nothing is charged.'],
  [414, 'UrlTooLong', 'The URL is too long. Nothing is charged.'],
  [431, 'HeadersTooLarge', 'Request line and headers together are larger than 16 KiB. Nothing is charged.'],
];

function unread([status, , description]: (typeof UNREAD)[number]): Json {
  const answer = problem(status, description);
  if (status !== 405) return answer;
  return { ...answer, headers: { ...(answer.headers as Json), Allow: text('The methods of the path') } };
}

/** The answers that every operation can give because no route reads the request. */
export const UNREAD_RESPONSES: Json = Object.fromEntries(
  UNREAD.map(([status, name]) => [status, reference('responses', name)]),
);

/** The component responses that operations refer to. */
export function componentResponses(mpp: boolean): Json {
  return {
    ...Object.fromEntries(PROBLEMS.map(([status, name, description]) => [name, problem(status, description)])),
    ...Object.fromEntries(UNREAD.map((row) => [row[1], unread(row)])),
    ...{ InFlight: problem(409, IN_FLIGHT), Gone: GONE },
    ...{ Unpaid: UNPAID, UnpaidLightning: UNPAID_LIGHTNING, ...(mpp && { UnpaidMpp: UNPAID_MPP }) },
  };
}

/** Every answer that a catalogue entry can give, as OpenAPI responses. */
export function describeResponses(endpoint: Endpoint<never>, mount: Mount): Json {
  const problems = PROBLEMS.map((row) => [row[0], problemOf(endpoint, row)]);
  return {
    200: success(endpoint, mount),
    ...Object.fromEntries(problems),
    ...(mount === 'free'
      ? {}
      : { 402: reference('responses', UNPAID_NAMES[mount]), 409: reference('responses', 'InFlight') }),
    ...(mount === 'paid' || mount === 'mpp' ? { 410: reference('responses', 'Gone') } : {}),
    ...(endpoint.reportsFault ? { 503: badNews(endpoint) } : {}),
  };
}
