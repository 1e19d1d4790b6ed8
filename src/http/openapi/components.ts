import { z } from 'zod';
import type { Endpoint } from '../../catalogue/endpoint.ts';
import { describeParams, toJsonSchema } from '../../catalogue/params.ts';
import { type Mount, pascal } from '../../catalogue/paths.ts';
import { sourceSchema } from '../../lib/service.ts';
import { always, anyMembers, COMPONENTS, PROBLEM, said, saidOrNull } from './route.ts';

// The schemas and the responses that the document describes once, and how a declared schema is written in it.

export type Json = Record<string, unknown>;

export const reference = (kind: 'headers' | 'responses' | 'schemas', name: string): Json => ({
  $ref: `#/components/${kind}/${name}`,
});

/** Generated clients name a type by it: `PaidFeesEstimate`. */
export function answerName({ access, path }: Pick<Endpoint<never>, 'access' | 'path'>): string {
  return pascal(`${access}${path}`);
}

export function problemName(endpoint: Pick<Endpoint<never>, 'access' | 'path'>): string {
  return `${answerName(endpoint)}Problem`;
}

export const COMPONENT_HEADERS: Json = {
  RequestId: { description: 'Names this answer; quote it when you report something', schema: { type: 'string' } },
  RetryAfter: { description: 'Seconds to wait', schema: { type: 'integer' } },
};
export const REQUEST_ID_HEADER: Json = { 'X-Request-Id': reference('headers', 'RequestId') };
export const RETRY_AFTER_HEADER: Json = { 'Retry-After': reference('headers', 'RetryAfter') };

/** So many answers must have a part for it to be described once for all. */
const MIN_ANSWERS = 3;

/** Declared ones, each entry's answer with its example and its problem, and the parts that several share. */
export function componentSchemas(catalogue: readonly Endpoint<never>[], named: Components): Json {
  const own: Json = { ...OWN_SCHEMAS, ...describeComponents(named), Source: SOURCE };
  const answers = catalogue.map((endpoint) => ({ endpoint, schema: toJsonSchema(endpoint.result, 'output') }));
  const schemas = answers.map(({ schema }) => schema);
  const parts = commonParts(schemas, own);
  const names = new Map(parts.map(([name, text]) => [text, name]));
  const described = answers.map(({ endpoint, schema }) => [
    answerName(endpoint),
    { ...refer(schema, names), examples: [endpoint.example.result] },
  ]);
  const problems = catalogue.flatMap((endpoint) => {
    if (!endpoint.problemMembers) return [];
    const members = refer(toJsonSchema(endpoint.problemMembers, 'input'), names);
    return [[problemName(endpoint), { allOf: [reference('schemas', 'Problem'), members] }]];
  });
  const shared = parts.map(([name, text]) => [name, refer(JSON.parse(text), names)]);
  return { ...own, ...Object.fromEntries([...shared, ...described, ...problems]) };
}

/** By name, as JSON. A name stands for the first part that has it. */
function commonParts(answers: readonly Json[], own: Json): [name: string, text: string][] {
  const found = new Map<string, { readonly name: string; answers: number }>();
  for (const answer of answers) {
    for (const [text, name] of new Map(membersOf(answer))) {
      const part = found.get(text) ?? { name, answers: 0 };
      part.answers += 1;
      found.set(text, part);
    }
  }
  const isTaken = (name: string, text: string) => Object.hasOwn(own, name) && JSON.stringify(own[name]) !== text;
  const common = [...found].filter(([text, { name, answers: count }]) => count >= MIN_ANSWERS && !isTaken(name, text));
  const byName = new Map(common.reverse().map(([text, { name }]) => [name, text]));
  return [...byName].sort(([one], [other]) => (one < other ? -1 : 1));
}

/** JSON and name of every member, at any depth, that is an object. */
function membersOf(schema: Json): [text: string, name: string][] {
  return Object.entries(schema).flatMap(([key, value]): [string, string][] => {
    if (typeof value !== 'object' || value === null) return [];
    const within = Object.values(value).flatMap((one) => (isSchema(one) ? membersOf(one) : []));
    if (key !== 'properties') return [...membersOf(value as Json), ...within];
    const objects = Object.entries(value as Record<string, Json>).filter(([, member]) => member.type === 'object');
    return [...objects.map(([name, member]): [string, string] => [JSON.stringify(member), pascal(name)]), ...within];
  });
}

const isSchema = (value: unknown): value is Json => typeof value === 'object' && value !== null;

function refer(schema: Json, names: ReadonlyMap<string, string>): Json {
  const replaced = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(replaced);
    if (!isSchema(value)) return value;
    const name = names.get(JSON.stringify(value));
    return name === undefined ? refer(value, names) : reference('schemas', name);
  };
  return Object.fromEntries(Object.entries(schema).map(([key, value]) => [key, replaced(value)]));
}

/** By name, those that routes refer to. */
export type Components = Map<string, z.core.$ZodType>;

/** Components may name others, which come after them. */
function describeComponents(found: Components): Json {
  const described: Json = { LightningChallenge: describeSchema(LIGHTNING_CHALLENGE, found) };
  for (const [name, type] of found) described[name] = describeSchema(type, found, type);
  return described;
}

/** A query by the names of its parameters. */
export function describeQuery(endpoint: Pick<Endpoint<never>, 'params' | 'example'>): Json {
  const params = describeParams(endpoint);
  const properties = params.map(({ name, description, schema }) => [name, { ...schema, description }]);
  const required = params.filter((param) => param.required).map(({ name }) => name);
  return { type: 'object', properties: Object.fromEntries(properties), required };
}

/** The parameters of a declared route. */
export function describeMembers(params: z.ZodObject): Json {
  return plain(describeQuery({ params, example: { params: {}, result: {} } }));
}

/** The document has them whatever routes say. */
const EVERYWHERE = ['Problem', 'Source'];

/** JSON Schema with references to components, but for the one that is `described`. `found` gets those. */
export function describeSchema(type: z.core.$ZodType, found: Components, described?: z.core.$ZodType): Json {
  const schema = z.toJSONSchema(type, {
    io: 'input',
    override({ zodSchema, jsonSchema }) {
      const name = zodSchema === described ? undefined : COMPONENTS.get(zodSchema)?.name;
      if (name === undefined) return;
      if (!EVERYWHERE.includes(name)) found.set(name, zodSchema);
      for (const key of Object.keys(jsonSchema)) delete jsonSchema[key];
      Object.assign(jsonSchema, reference('schemas', name));
    },
  });
  return plain(schema as Json);
}

/** The order of a schema's members in the document. Others follow. */
const ORDER = [
  ...['type', 'enum', 'properties', 'required', 'items', 'additionalProperties', 'pattern', 'minimum', 'maximum'],
  ...['maxLength', 'default', 'description', 'examples'],
];
const place = (key: string): number => (ORDER.includes(key) ? ORDER.indexOf(key) : ORDER.length);

/** Says null as a type, and leaves out bounds that mean "exact in a double" or "not empty", and any form. */
function plain({ $schema: _1, $defs: _2, propertyNames: _3, minLength: _4, anyOf, ...rest }: Json): Json {
  const schema: Json = anyOf === undefined ? rest : { ...eitherOf(anyOf as Json[]), ...rest };
  const { additionalProperties: others, properties, items } = schema;
  if (schema.minimum === Number.MIN_SAFE_INTEGER) delete schema.minimum;
  if (schema.maximum === Number.MAX_SAFE_INTEGER) delete schema.maximum;
  if (String(schema.$ref).startsWith('#/$defs/')) delete schema.$ref;
  if (others === false) delete schema.additionalProperties;
  else if (isSchema(others)) schema.additionalProperties = Object.keys(others).length === 0 || plain(others);
  const members = Object.entries((properties ?? {}) as Record<string, Json>);
  if (members.length === 0) delete schema.properties;
  else schema.properties = Object.fromEntries(members.map(([name, member]) => [name, plain(member)]));
  if (isSchema(items)) schema.items = plain(items);
  return Object.fromEntries(Object.entries(schema).sort(([one], [other]) => place(one) - place(other)));
}

function eitherOf(forms: readonly Json[]): Json {
  const [form = {}, other] = forms.map(plain);
  if (forms.length !== 2 || other?.type !== 'null') return { anyOf: forms.map(plain) };
  return { ...form, type: [form.type, 'null'] };
}

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

/** The 402 of Lightning: its body repeats the header, with the price. */
const LIGHTNING_CHALLENGE = z
  .object({
    x402Version: always(2),
    error: said('Why this is no answer yet; the reason when a proof was refused'),
    resource: anyMembers,
    accepts: z.array(anyMembers).meta({
      description:
        'What to pay: `amount` in millisatoshis, `extra.invoice` the BOLT11 invoice. Empty when a proof was refused ' +
        'and no new invoice can be made now.',
    }),
    extensions: anyMembers.meta({ description: '`bazaar`: how the route is called' }),
    priceUsd: saidOrNull('Decimal USD'),
    btcUsd: saidOrNull('The rate of the quote; null without one'),
  })
  .meta({ description: 'The JSON of the PAYMENT-REQUIRED header, and the price' });

const OWN_SCHEMAS: Json = {
  Problem: {
    ...toJsonSchema(PROBLEM, 'input'),
    description: 'RFC 9457 problem details; routes may add members',
    examples: [PROBLEM_EXAMPLE],
  },
  Hint: toJsonSchema(
    z.strictObject({
      hint: said('What is wrong, or what the route sells; the price; what to do next; where to read more'),
    }),
    'input',
  ),
};
const SOURCE = toJsonSchema(sourceSchema, 'output');

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

/** The problems that every route of the catalogue may answer. */
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
    'Too many requests; wait for Retry-After. Nothing is charged for it; a payment that came with it was perhaps not ' +
      'looked at (`charged` is then "unknown"): present the same one again.',
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
    'Not possible now, or an outcome of the payment that is not known yet (`charged` is then "unknown"). Repeat the ' +
      'same request.',
  ],
];

/** These problems have the endpoint's members, unless the service itself ran out of time. */
const TELLING = [404, 502];

function problemOf(endpoint: Endpoint<never>, [status, name, description]: (typeof PROBLEMS)[number]): Json {
  if (!endpoint.problemMembers || !TELLING.includes(status)) return reference('responses', name);
  return problem(status, description, { anyOf: [reference('schemas', problemName(endpoint)), OF_PROBLEM] });
}

function success(endpoint: Endpoint<never>, mount: Mount): Json {
  return {
    description: endpoint.summary,
    headers: { ...REQUEST_ID_HEADER, ...HEADERS[mount] },
    content: { 'application/json': { schema: reference('schemas', answerName(endpoint)) } },
  };
}

function badNews(endpoint: Endpoint<never>): Json {
  const { headers, content } = problem(503, '');
  const own = { 'application/json': { schema: reference('schemas', answerName(endpoint)) } };
  return {
    description: 'The same body as with 200: its `status` says what is wrong.',
    headers,
    content: { ...own, ...(content as Json) },
  };
}

export function componentResponses(mpp: boolean): Json {
  return {
    ...Object.fromEntries(PROBLEMS.map(([status, name, description]) => [name, problem(status, description)])),
    ...Object.fromEntries(UNREAD.map((row) => [row[1], unread(row)])),
    InFlight: problem(409, IN_FLIGHT),
    Gone: GONE,
    Unpaid: UNPAID,
    UnpaidLightning: UNPAID_LIGHTNING,
    ...(mpp && { UnpaidMpp: UNPAID_MPP }),
  };
}

const text = (description: string): Json => ({ description, schema: { type: 'string' } });

const OF_PROBLEM = reference('schemas', 'Problem');

function problem(status: number, description: string, schema = OF_PROBLEM): Json {
  const waits = status === 429 || status === 503;
  return {
    description,
    headers: { ...REQUEST_ID_HEADER, ...(waits ? RETRY_AFTER_HEADER : {}) },
    content: { 'application/problem+json': { schema } },
  };
}

const RECEIPT = 'Base64url JSON: MPP’s receipt';

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

const LINK = text('`rel="api-catalog"`: the documents of all APIs (RFC 9727)');

const UNPAID: Json = {
  description:
    'Not paid, or the payment was refused: `error` in the header says why. Nothing was charged for this request.',
  headers: { 'PAYMENT-REQUIRED': PAYMENT_REQUIRED, Link: LINK, ...REQUEST_ID_HEADER },
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

/** MPP’s own. Whether the refused payment can still move money is not known, so it has no `charged`. */
const PAYMENT_PROBLEM = z.object({
  type: said('MPP’s type of the problem, below https://paymentauth.org/problems/'),
  title: z.string(),
  status: z.int().meta({ const: 402 }),
  detail: said('Why, the price, and what to do next'),
  code: said('The reason in this service’s own words; `payment_required` without a payment'),
  challengeId: said('The `id` of the challenge in WWW-Authenticate'),
});

const UNPAID_MPP: Json = {
  ...problem(
    402,
    'Not paid, or the payment was refused: `code` says why. Nothing was charged for this request.',
    describeSchema(PAYMENT_PROBLEM, new Map()),
  ),
  headers: {
    'WWW-Authenticate': text('`Payment` (MPP): method `evm`, intent `charge`'),
    Link: LINK,
    ...REQUEST_ID_HEADER,
  },
};

const UNPAID_NAMES = { paid: 'Unpaid', lightning: 'UnpaidLightning', mpp: 'UnpaidMpp' } as const;

const GONE_TEXT =
  'The payment was taken, and its answer was not fetched while it was kept (`charged` is true). Do not pay again: ' +
  'ask the seller.';
const GONE: Json = {
  ...problem(410, GONE_TEXT),
  headers: {
    'PAYMENT-RESPONSE': text('In a payment channel: base64 JSON, the receipt with the charges of the channel'),
    ...REQUEST_ID_HEADER,
  },
};
const IN_FLIGHT = 'This payment is being worked on, or its identifier came with another payload. Wait for Retry-After.';

/** Refusals of a request's method and size, before a route reads it. */
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

export const UNREAD_RESPONSES: Json = Object.fromEntries(
  UNREAD.map(([status, name]) => [status, reference('responses', name)]),
);
