import { followReference as follow, isObject, own, ownKeys, plainText } from '../lib/untrusted.ts';
import type { Challenge } from './challenge.ts';
import {
  decodeBraces,
  type Entry,
  keywordsOf,
  type ListedEntry,
  listOf,
  placeOf,
  readListedUrl,
  readTags,
  TEXT_LIMITS,
} from './entry.ts';

// What untrusted documents say about a seller's route, as plain text of limited length: its 402 (`describeChallenge`),
// and its origin's OpenAPI document (`describeOpenApi`) and /.well-known/x402 (`describeWellKnown`).

/** Empty text, null and no parameters mean that the document says nothing. */
export interface Description {
  readonly name: string;
  readonly label: string;
  readonly description: string;
  readonly category: string;
  readonly params: Entry['params'];
  readonly body: Entry['body'];
  readonly keywords: string;
  readonly method: Entry['method'] | null;
}

export const NO_DESCRIPTION: Description = {
  name: '',
  label: '',
  description: '',
  category: '',
  params: [],
  body: null,
  keywords: '',
  method: null,
};

/** Each member comes from the first description that has it. */
export function joinDescriptions(...descriptions: readonly Description[]): Description {
  const text = (key: 'name' | 'label' | 'description' | 'category' | 'keywords') =>
    descriptions.map((one) => one[key]).find((words) => words !== '') ?? '';
  // The example must come from the same document as the parameters.
  const described = descriptions.find(({ params }) => params.length > 0);
  return {
    name: text('name'),
    label: text('label'),
    description: text('description'),
    category: text('category'),
    keywords: text('keywords'),
    params: described?.params ?? [],
    body: described?.body ?? descriptions.find(({ body }) => body !== null)?.body ?? null,
    method: descriptions.find(({ method }) => method !== null)?.method ?? null,
  };
}

export function isComplete({ name, description, params }: Description): boolean {
  return name !== '' && description !== '' && params.length > 0;
}

/** Version 2 describes in `resource` and the bazaar extension, version 1 in its `accepts`. */
export function describeChallenge(challenge: Challenge, url: URL, answered: Entry['method']): Description {
  const describe = challenge.version === 2 ? describeV2 : describeV1;
  return describe(challenge.whole, url, answered);
}

function describeV2(whole: unknown, url: URL, answered: Entry['method']): Description {
  const resource = own(whole, 'resource');
  const bazaar = own(own(whole, 'extensions'), 'bazaar');
  const info = own(bazaar, 'info');
  const input = own(info, 'input');
  const schemas = own(own(own(own(bazaar, 'schema'), 'properties'), 'input'), 'properties');
  const group = (key: string) => groupOf(own(schemas, key), own(input, key));
  const groups = { pathParams: group('pathParams'), queryParams: group('queryParams'), body: group('body') };
  const method = methodOf(own(input, 'method'));
  const tags = readTags(own(resource, 'tags'));
  const output = own(info, 'output');
  return {
    name: '',
    label: plainText(own(resource, 'serviceName'), TEXT_LIMITS.label),
    description: plainText(own(resource, 'description'), TEXT_LIMITS.description),
    category: plainText(own(info, 'category'), TEXT_LIMITS.category) || (tags[0] ?? ''),
    ...describeInput(groups, method ?? answered, url),
    keywords: keywordsOf(tags, own(output, 'example')),
    method,
  };
}

function describeV1(whole: unknown, url: URL, answered: Entry['method']): Description {
  const accepts = listOf(own(whole, 'accepts'));
  const entry = accepts.find((one) => own(one, 'description') || own(one, 'outputSchema'));
  const schema = own(entry, 'outputSchema');
  const input = own(schema, 'input');
  const method = methodOf(own(input, 'method'));
  return {
    name: '',
    label: '',
    description: plainText(own(entry, 'description'), TEXT_LIMITS.description),
    category: plainText(own(input, 'category'), TEXT_LIMITS.category),
    ...describeInput(hasGroup(input) ? input : undefined, method ?? answered, url),
    keywords: keywordsOf([], own(schema, 'output')),
    method,
  };
}

function hasGroup(input: unknown): boolean {
  return ['queryParams', 'bodyFields', 'bodyParams', 'pathParams', 'body', 'properties'].some((key) => own(input, key));
}

/** A large service describes hundreds in one file. */
const MAX_PATHS = 2000;
const MAX_DOCUMENT_PARAMS = 50;
const MAX_SERVERS = 10;

/** What OpenAPI 3.x in JSON says about a route; NO_DESCRIPTION when it does not have the route. */
export function describeOpenApi(document: unknown, url: URL, answered: Entry['method']): Description {
  const found = findOperation(document, url, answered);
  if (!found) return NO_DESCRIPTION;
  const { item, operation, method } = found;
  const parameters = [...listOf(own(operation, 'parameters')), ...listOf(own(item, 'parameters'))].map((given) =>
    follow(document, given),
  );
  const content = jsonContent(follow(document, own(operation, 'requestBody')));
  const groups = {
    pathParams: parametersIn(document, parameters, 'path'),
    queryParams: parametersIn(document, parameters, 'query'),
    body: groupOf(followMembers(document, own(content, 'schema')), own(content, 'example')),
  };
  const tags = readTags(own(operation, 'tags'));
  const summary = plainText(own(operation, 'summary') ?? own(operation, 'operationId'), TEXT_LIMITS.name);
  return {
    name: summary,
    label: plainText(own(own(document, 'info'), 'title'), TEXT_LIMITS.label),
    description: plainText(own(operation, 'description'), TEXT_LIMITS.description) || summary,
    category: tags[0] ?? '',
    ...describeInput(groups, method, url),
    keywords: keywordsOf(tags, answerOf(document, operation)),
    method,
  };
}

/** An equal path precedes a template that matches, the method that answered the other. */
function findOperation(document: unknown, url: URL, answered: Entry['method']) {
  const prefixes = ['', ...listOf(own(document, 'servers')).slice(0, MAX_SERVERS).map(prefixOf)];
  const asked = trimmed(decodeBraces(url.pathname));
  const paths = own(document, 'paths');
  const templates = isObject(paths) ? Object.keys(paths).slice(0, MAX_PATHS) : [];
  const fits = (test: (path: string) => boolean) =>
    templates.find((template) => prefixes.some((prefix) => test(trimmed(prefix + template))));
  const template = fits((path) => path === asked) ?? fits((path) => matches(path, asked));
  if (template === undefined) return null;
  const item = follow(document, own(paths, template));
  const methods = [answered, 'GET', 'POST'].map((name) => methodOf(name) ?? answered);
  const method = methods.find((name) => isObject(own(item, name.toLowerCase())));
  return method === undefined ? null : { item, operation: own(item, method.toLowerCase()), method };
}

/** The path precedes the document's. The host is ignored: the route's own host answered. */
function prefixOf(server: unknown): string {
  const url = URL.parse(String(own(server, 'url')), 'https://server.invalid');
  return url === null ? '' : trimmed(url.pathname);
}

function matches(template: string, path: string): boolean {
  const [wanted, given] = [template.split('/'), path.split('/')];
  return wanted.length === given.length && wanted.every((part, at) => /^\{.+\}$/.test(part) || part === given[at]);
}

function trimmed(path: string): string {
  return path.replace(/\/+$/, '');
}

/** An operation's parameters take precedence over its path's. */
function parametersIn(document: unknown, parameters: readonly unknown[], place: string): object | undefined {
  const here = parameters.filter((given) => own(given, 'in') === place && typeof own(given, 'name') === 'string');
  const members = here.slice(0, MAX_DOCUMENT_PARAMS).map((given): [string, object] => {
    const schema = follow(document, own(given, 'schema'));
    const texts = { description: own(given, 'description'), example: own(given, 'example') };
    const present = Object.entries(texts).filter(([, value]) => value !== undefined);
    return [String(own(given, 'name')), { ...(isObject(schema) ? schema : {}), ...Object.fromEntries(present) }];
  });
  const required = here.filter((given) => own(given, 'required') === true).map((given) => own(given, 'name'));
  return members.length === 0 ? undefined : { properties: Object.fromEntries(members.reverse()), required };
}

function followMembers(document: unknown, given: unknown): object {
  const schema = follow(document, given);
  const properties = own(schema, 'properties');
  const members = isObject(properties) ? Object.entries(properties).slice(0, MAX_DOCUMENT_PARAMS) : [];
  return {
    properties: Object.fromEntries(members.map(([name, member]) => [name, follow(document, member)])),
    required: own(schema, 'required'),
  };
}

function answerOf(document: unknown, operation: unknown): unknown {
  const content = jsonContent(follow(document, own(own(operation, 'responses'), '200')));
  const schema = follow(document, own(content, 'schema'));
  const properties = own(schema, 'properties');
  return isObject(properties)
    ? Object.fromEntries(Object.keys(properties).map((name) => [name, null]))
    : own(content, 'example');
}

function jsonContent(holder: unknown): unknown {
  return own(own(holder, 'content'), 'application/json');
}

/** Several drafts exist, none final: all are read. */
const LISTS = ['items', 'resources', 'endpoints', 'routes'];
const ADDRESSES = ['resource', 'url', 'path'];
const MAX_ITEMS = 2000;

/** NO_DESCRIPTION when no item has the route's address. */
export function describeWellKnown(document: unknown, url: URL, answered: Entry['method']): Description {
  const items = LISTS.flatMap((name) => listOf(own(document, name))).slice(0, MAX_ITEMS);
  const place = placeOf(url.href);
  const here = items.filter((item) => addressOf(item, url) === place);
  const item = here.find((one) => methodOf(own(one, 'method')) === answered) ?? here[0];
  if (item === undefined) return NO_DESCRIPTION;
  const metadata = own(item, 'metadata');
  const memberOf = (...names: readonly string[]) =>
    names.map((name) => own(item, name) ?? own(metadata, name)).find((value) => value !== undefined);
  const service = own(document, 'name') ?? own(document, 'title');
  const method = methodOf(memberOf('method'));
  const input = inputOf(memberOf('params', 'parameters'), memberOf('input', 'inputSchema'));
  const tags = readTags(memberOf('tags'));
  return {
    name: plainText(memberOf('name', 'title', 'summary'), TEXT_LIMITS.name),
    label: plainText(memberOf('serviceName', 'label') ?? service, TEXT_LIMITS.label),
    description: plainText(memberOf('description'), TEXT_LIMITS.description),
    category: plainText(memberOf('category'), TEXT_LIMITS.category) || (tags[0] ?? ''),
    ...describeInput(input, method ?? answered, url),
    keywords: keywordsOf(tags, own(memberOf('output'), 'properties') ?? memberOf('output')),
    method,
  };
}

/** An item's address in the form of `placeOf`. A bare path belongs to the document's origin. */
function addressOf(item: unknown, url: URL): string | null {
  const given = ADDRESSES.map((name) => own(item, name)).find((value) => typeof value === 'string');
  if (typeof given !== 'string') return null;
  const listed = readListedUrl(given.startsWith('/') ? url.origin + given : given);
  return listed === null ? null : placeOf(listed.url);
}

function inputOf(list: unknown, input: unknown): unknown {
  const named = listOf(list).filter((one) => typeof own(one, 'name') === 'string');
  if (named.length === 0) return isObject(list) ? list : input;
  const place = (one: unknown) =>
    own(one, 'in') === 'body' ? 'body' : own(one, 'in') === 'path' ? 'pathParams' : null;
  const group = (name: string | null) => {
    const members = named.filter((one) => place(one) === name).map((one) => [String(own(one, 'name')), schemaOf(one)]);
    return members.length === 0 ? undefined : { properties: Object.fromEntries(members) };
  };
  const [body, pathParams, rest] = [group('body'), group('pathParams'), group(null)];
  return body || pathParams ? { body, pathParams, queryParams: rest } : rest;
}

function schemaOf(parameter: unknown): object {
  const schema = own(parameter, 'schema');
  const members = isObject(parameter) ? parameter : {};
  return { ...(isObject(schema) ? schema : {}), ...members };
}

/** GET or POST; null for any other, because our entries cannot express its call. */
export function methodOf(value: unknown): Entry['method'] | null {
  const word = typeof value === 'string' ? value.toUpperCase() : '';
  return word === 'GET' || word === 'POST' ? word : null;
}

function describeInput(input: unknown, method: Entry['method'], url: URL): Pick<Description, 'params' | 'body'> {
  const params = readParams(input, method, decodeBraces(url.href));
  return { params, body: readBody(input, params) };
}

function groupOf(schema: unknown, example: unknown): object | undefined {
  const [described, shown] = [own(schema, 'properties'), example].map((one) => (isObject(one) ? one : {}));
  const named = new Set([...Object.keys(described ?? {}), ...Object.keys(shown ?? {})]);
  const names = [...named].filter((name) => name !== '__proto__');
  if (names.length === 0) return undefined;
  const members = names.map((name): [string, object] => {
    const [member, value] = [own(described, name), own(shown, name)];
    const type = Array.isArray(value) ? 'array' : typeof value;
    return [name, { type, ...(isObject(member) ? member : {}), ...(value === undefined ? {} : { example: value }) }];
  });
  return { properties: Object.fromEntries(members), required: own(schema, 'required') };
}

type Param = ListedEntry['params'][number];
type Json = Param['example'];

const MAX_PARAMS = 20;
const MAX_DESCRIPTION = 200;
/** Characters as JSON of a parameter's example, and of a whole body's. */
const MAX_EXAMPLE = 300;
const MAX_BODY = 2000;
const MAX_TEXT = 200;
const MAX_MEMBERS = 30;
const MAX_DEPTH = 5;

const NAME = /^[A-Za-z0-9_$][\w$.:[\]-]{0,63}$/;
const TYPES = new Set(['string', 'integer', 'number', 'boolean', 'array', 'object']);

/** The names of groups in x402 v1, Bazaar and Circle's catalogue. */
const GROUPS = [
  { keys: ['pathParams'], in: 'path' },
  { keys: ['queryParams'], in: 'query' },
  { keys: ['bodyParams', 'bodyFields', 'body'], in: 'body' },
] as const;

/**
 * Reads a JSON Schema of an object, or groups such as `queryParams`, and always the URL's {placeholders}. A parameter
 * outside of groups belongs to the query of a GET or to the body of a POST.
 */
export function readParams(input: unknown, method: 'GET' | 'POST', url: string): Param[] {
  const found = new Map<string, Param>();
  const add = (param: Param | null) => {
    if (param && found.size < MAX_PARAMS && !found.has(param.name)) found.set(param.name, param);
  };
  const placeholders = [...url.matchAll(/\{([^{}/]+)\}/g)].map((match) => match[1] ?? '');
  const grouped = GROUPS.some(({ keys }) => keys.some((key) => own(input, key) !== undefined));
  const elsewhere = method === 'GET' ? ('query' as const) : ('body' as const);
  const groups = grouped
    ? GROUPS.map((group) => ({ place: group.in, members: group.keys.map((key) => own(input, key)).find(isObject) }))
    : [{ place: elsewhere, members: isObject(input) ? input : undefined }];
  for (const { place, members } of groups) {
    const properties = own(members, 'properties');
    const fields = isObject(properties) ? properties : grouped ? members : undefined;
    for (const name of ownKeys(fields)?.slice(0, MAX_PARAMS) ?? []) {
      const at = placeholders.includes(String(name)) ? 'path' : place;
      add(readParam(String(name), own(fields, name), at, own(members, 'required')));
    }
  }
  for (const name of placeholders) add(readParam(name, { type: 'string' }, 'path', [name]));
  return [...found.values()];
}

function readParam(name: string, spec: unknown, place: Param['in'], required: unknown): Param | null {
  if (!NAME.test(name)) return null;
  const isSpec = isObject(spec);
  const examples = own(spec, 'examples');
  const example = own(spec, 'example') ?? (Array.isArray(examples) ? examples[0] : undefined) ?? own(spec, 'default');
  return {
    name,
    in: place,
    type: typeOf(isSpec ? own(spec, 'type') : typeof spec),
    description: plainText(own(spec, 'description'), MAX_DESCRIPTION),
    required:
      place === 'path' || (Array.isArray(required) && required.includes(name)) || own(spec, 'required') === true,
    // A value without a description is itself the example.
    example: cleanJson(isSpec ? example : spec, MAX_EXAMPLE),
  };
}

function typeOf(type: unknown): string {
  const named = Array.isArray(type) ? type.find((one) => one !== 'null') : type;
  return typeof named === 'string' && TYPES.has(named) ? named : 'any';
}

/** The seller's own example, or one of its fields' examples. Null when there is none. */
export function readBody(input: unknown, params: readonly Param[]): Json {
  const example = own(input, 'example') ?? own(own(input, 'body'), 'example');
  if (isObject(example)) return cleanJson(example, MAX_BODY);
  const fields = params.filter((param) => param.in === 'body' && param.example !== null);
  return fields.length === 0 ? null : Object.fromEntries(fields.map((param) => [param.name, param.example]));
}

/** JSON with plain texts and limited depth, members and length. Null when it is too large. */
function cleanJson(value: unknown, max: number): Json {
  const cleaned = clean(value, 0);
  return JSON.stringify(cleaned).length <= max ? cleaned : null;
}

function clean(value: unknown, depth: number): Json {
  if (typeof value === 'string') return plainText(value, MAX_TEXT);
  if (typeof value === 'boolean') return value;
  if (typeof value === 'number') return Number.isFinite(value) ? value : null;
  if (depth === MAX_DEPTH) return null;
  if (Array.isArray(value)) return value.slice(0, MAX_MEMBERS).map((item) => clean(item, depth + 1));
  const keys = (ownKeys(value) ?? []).map(String).filter((key) => NAME.test(key) && key !== '__proto__');
  if (!isObject(value)) return null;
  return Object.fromEntries(keys.slice(0, MAX_MEMBERS).map((key) => [key, clean(own(value, key), depth + 1)]));
}
