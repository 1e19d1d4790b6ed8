import { z } from 'zod';
import type { Endpoint } from '../../catalogue/endpoint.ts';
import { describeParams, type Parsed, toJsonSchema } from '../../catalogue/params.ts';
import { type Mount, pascal } from '../../catalogue/paths.ts';
import { sourceSchema } from '../../lib/service.ts';
import {
  type Answered,
  always,
  anyMembers,
  COMPONENTS,
  inJson,
  PROBLEM,
  problem,
  said,
  saidOrNull,
  whole,
} from './route.ts';

// The schemas and the responses that the document describes once, and how a declared schema is written in it.

export type Json = Record<string, unknown>;

const reference = (kind: 'headers' | 'responses' | 'schemas', name: string): Json => ({
  $ref: `#/components/${kind}/${name}`,
});

/** Generated clients name a type by it: `PaidFeesEstimate`. */
function answerName({ access, path }: Pick<Endpoint<never>, 'access' | 'path'>): string {
  return pascal(`${access}${path}`);
}

function problemName(endpoint: Pick<Endpoint<never>, 'access' | 'path'>): string {
  return `${answerName(endpoint)}Problem`;
}

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
  const described: Json = {};
  for (const [name, type] of found) described[name] = describeSchema(type, found, type);
  return described;
}

/** A query by the names of its parameters. */
export function describeQuery(asked: Parsed): Json {
  const params = describeParams(asked);
  const properties = params.map(({ name, description, schema }) => [name, { ...schema, description }]);
  const required = params.filter((param) => param.required).map(({ name }) => name);
  return { type: 'object', properties: Object.fromEntries(properties), required };
}

/** The parameters of a declared route. */
export function describeMembers(params: z.ZodObject): Json {
  return plain(describeQuery({ params }));
}

/** The document has them whatever routes say. */
const EVERYWHERE = ['Problem', 'Hint', 'Source'];

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

const HINT = z.strictObject({
  hint: said('What is wrong, or what the route sells; the price; what to do next; where to read more'),
});
COMPONENTS.add(HINT, { name: 'Hint' });

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
COMPONENTS.add(LIGHTNING_CHALLENGE, { name: 'LightningChallenge' });

/** MPP’s own. Whether the refused payment can still move money is not known, so it has no `charged`. */
const PAYMENT_PROBLEM = z.object({
  type: said('MPP’s type of the problem, below https://paymentauth.org/problems/'),
  title: z.string(),
  status: z.int().meta({ const: 402 }),
  detail: said('Why, the price, and what to do next'),
  code: said('The reason in this service’s own words; `payment_required` without a payment'),
  challengeId: said('The `id` of the challenge in WWW-Authenticate'),
});

const OWN_SCHEMAS: Json = { Problem: toJsonSchema(PROBLEM, 'input'), Hint: toJsonSchema(HINT, 'input') };
const SOURCE = toJsonSchema(sourceSchema, 'output');

/** Header fields that the document describes once. */
const HEADERS = {
  RequestId: said('Names this answer; quote it when you report something'),
  RetryAfter: whole('Seconds to wait'),
};
const REQUEST_ID = { 'X-Request-Id': HEADERS.RequestId };

type Headers = NonNullable<Answered['headers']>;

/** An answer that the document describes once. */
type Shared = Answered & { readonly status: number };

function failing(status: number, description: string, headers?: Headers): Shared {
  const waits = status === 429 || status === 503;
  const usual = { ...REQUEST_ID, ...(waits && { 'Retry-After': HEADERS.RetryAfter }) };
  return { ...problem(description), status, headers: headers ?? usual };
}

const FREE = 'Nothing is charged.';
const METHODS = { ...REQUEST_ID, Allow: said('The methods of the path') };

/** Refusals of a request's method and size, before any route reads it. */
const UNREAD = {
  MethodNotAllowed: failing(405, `The path has no such method; \`Allow\` names those that it has. ${FREE}`, METHODS),
  UrlTooLong: failing(414, `The URL is too long. ${FREE}`),
  HeadersTooLarge: failing(431, `Request line and headers together are larger than 16 KiB. ${FREE}`),
};

const UNLESS = 'Not charged, unless `charged` is "unknown"';
const AGAIN = `${UNLESS}: present the same payment again.`;

/** What every entry of the catalogue may answer. */
const PROBLEMS = {
  BadParameter: failing(400, `A parameter is bad; \`errors\` names it. ${UNLESS}.`),
  NotFound: failing(404, `What was asked for does not exist. ${AGAIN}`),
  TooManyRequests: failing(
    429,
    'Too many requests; wait for Retry-After. Nothing is charged for it; a payment that came with it was perhaps not ' +
      'looked at (`charged` is then "unknown"): present the same one again.',
  ),
  Fault: failing(500, `A fault of the service. ${AGAIN}`),
  BadSource: failing(502, `A source of the data failed. ${AGAIN}`),
  NotNow: failing(
    503,
    'Not possible now, or an outcome of the payment that is not known yet (`charged` is then "unknown"). Repeat the ' +
      'same request.',
  ),
  ...UNREAD,
};

const UNPAID_HEADERS = {
  'PAYMENT-REQUIRED': said(
    'Base64 JSON of x402 version 2: `accepts` holds what to pay, `error` why a payment was refused',
  ),
  Link: said('`rel="api-catalog"`: the documents of all APIs (RFC 9727)'),
  ...REQUEST_ID,
};

const NOT_PAID = 'Not paid, or the payment was refused';
const UNCHARGED = 'Nothing was charged for this request.';

/** What may be answered where a payment is asked for. */
const OF_PAYMENT = {
  InFlight: failing(
    409,
    'This payment is being worked on, or its identifier came with another payload. Wait for Retry-After.',
  ),
  Gone: failing(
    410,
    'The payment was taken, and its answer was not fetched while it was kept (`charged` is true). Do not pay again: ' +
      'ask the seller.',
    {
      'PAYMENT-RESPONSE': said('In a payment channel: base64 JSON, the receipt with the charges of the channel'),
      ...REQUEST_ID,
    },
  ),
  Unpaid: unpaid(inJson(HINT, `${NOT_PAID}: \`error\` in the header says why. ${UNCHARGED}`), UNPAID_HEADERS),
  UnpaidLightning: unpaid(
    inJson(
      LIGHTNING_CHALLENGE,
      'Not paid: the answer exists and is sold for the invoice in it. Or a proof was refused: `error` says why.',
    ),
    {
      ...UNPAID_HEADERS,
      'WWW-Authenticate': said(
        'The same invoice in two more protocols, a line each: L402, and `Payment` (MPP), method `lightning`',
      ),
    },
  ),
  UnpaidMpp: unpaid(
    { ...problem(`${NOT_PAID}: \`code\` says why. ${UNCHARGED}`), schema: PAYMENT_PROBLEM },
    {
      'WWW-Authenticate': said('`Payment` (MPP): method `evm`, intent `charge`'),
      Link: UNPAID_HEADERS.Link,
      ...REQUEST_ID,
    },
  ),
};

function unpaid(answer: Answered, headers: Headers): Shared {
  return { ...answer, status: 402, headers };
}

const { InFlight, Gone, Unpaid, UnpaidLightning, UnpaidMpp } = OF_PAYMENT;
const ON: Record<Mount, Readonly<Record<string, Shared>>> = {
  free: PROBLEMS,
  paid: { ...PROBLEMS, InFlight, Gone, Unpaid },
  lightning: { ...PROBLEMS, InFlight, UnpaidLightning },
  mpp: { ...PROBLEMS, InFlight, Gone, UnpaidMpp },
};

const referencesTo = (shared: Readonly<Record<string, Shared>>): Json =>
  Object.fromEntries(Object.entries(shared).map(([name, { status }]) => [status, reference('responses', name)]));

/** What every served path answers. */
export const UNREAD_RESPONSES: Json = referencesTo(UNREAD);

const RECEIPT = 'Base64url JSON: MPP’s receipt';

const REPLY_HEADERS: Record<Mount, Headers> = {
  free: { ETag: said('Send it back in If-None-Match and get 304 while nothing changed') },
  paid: { 'PAYMENT-RESPONSE': said('Base64 JSON: the settlement with its transaction hash') },
  lightning: {
    'PAYMENT-RESPONSE': said('Base64 JSON: the settlement with the payment hash'),
    'Payment-Receipt': said(`${RECEIPT}, where the payment came over MPP`),
  },
  mpp: { 'Payment-Receipt': said(`${RECEIPT} with its transaction hash`) },
};

export function describeResponses(endpoint: Endpoint<never>, mount: Mount): Json {
  const found: Components = new Map();
  const reply = { 'application/json': { schema: reference('schemas', answerName(endpoint)) } };
  const responses = referencesTo(ON[mount]);
  const headers = { ...REQUEST_ID, ...REPLY_HEADERS[mount] };
  responses[200] = { ...describeAnswer({ description: endpoint.label, headers }, found), content: reply };
  if (endpoint.problemMembers) {
    const schema = { anyOf: [reference('schemas', problemName(endpoint)), reference('schemas', 'Problem')] };
    const content = { 'application/problem+json': { schema } };
    for (const told of TELLING) responses[told.status] = { ...describeAnswer(told, found), content };
  }
  if (endpoint.reportsFault) {
    const { content, ...rest } = describeAnswer(BAD_NEWS, found);
    responses[503] = { ...rest, content: { ...reply, ...(content as Json) } };
  }
  return responses;
}

/** These have the endpoint's members, unless the service itself ran out of time. */
const TELLING = [PROBLEMS.NotFound, PROBLEMS.BadSource];
const BAD_NEWS = failing(503, 'The same body as with 200: its `status` says what is wrong.');

/** `found` gets the components that they name. */
export function componentResponses(mpp: boolean, found: Components): Json {
  const { UnpaidMpp: _, ...others } = OF_PAYMENT;
  return mapValues({ ...PROBLEMS, ...(mpp ? OF_PAYMENT : others) }, (answer) => describeAnswer(answer, found));
}

export const componentHeaders = (): Json => mapValues(HEADERS, describeHeader);

/** An answer without a body has no content. */
export function describeAnswer({ description, headers, type, schema }: Answered, found: Components): Json {
  return {
    description,
    ...(headers && { headers: mapValues(headers, referToHeader) }),
    ...(type && schema && { content: { [type]: { schema: describeSchema(schema, found) } } }),
  };
}

function referToHeader(type: z.ZodType): Json {
  const [name] = Object.entries(HEADERS).find(([, shared]) => shared === type) ?? [];
  return name === undefined ? describeHeader(type) : reference('headers', name);
}

function describeHeader(type: z.ZodType): Json {
  const { description, ...schema } = describeSchema(type, new Map());
  return { description, schema };
}

export const mapValues = <T>(values: Readonly<Record<string, T>>, map: (value: T) => Json): Json =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, map(value)]));
