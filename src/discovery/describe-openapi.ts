import { followReference as follow, own, plainText } from '../lib/untrusted.ts';
import type { Entry } from './entry.ts';
import { isObject, keywordsOf, listOf, readTags, TEXT_LIMITS } from './market/market-text.ts';
import {
  type Description,
  decodeBraces,
  describeInput,
  groupOf,
  methodOf,
  NO_DESCRIPTION,
} from './read-description.ts';

/** The most paths that are searched. A large service describes hundreds in one file. */
const MAX_PATHS = 2000;
const MAX_PARAMS = 50;
const MAX_SERVERS = 10;

/** What a seller's OpenAPI document (3.x, JSON) says about one of its routes. NO_DESCRIPTION when it does not describe the route. */
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

/**
 * Finds the operation of a route. A path that equals the route's comes before a template that matches it. The method that answered comes before the
 * other one.
 */
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

/**
 * The path of a server entry, which precedes every path of the document. Its host is ignored, because the document was read from the route's own
 * host.
 */
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

/** OpenAPI's parameter list in the form of a parameter group. Parameters of an operation take precedence over those of its path. */
function parametersIn(document: unknown, parameters: readonly unknown[], place: string): object | undefined {
  const here = parameters.filter((given) => own(given, 'in') === place && typeof own(given, 'name') === 'string');
  const members = here.slice(0, MAX_PARAMS).map((given): [string, object] => {
    const schema = follow(document, own(given, 'schema'));
    const texts = { description: own(given, 'description'), example: own(given, 'example') };
    const present = Object.entries(texts).filter(([, value]) => value !== undefined);
    return [String(own(given, 'name')), { ...(isObject(schema) ? schema : {}), ...Object.fromEntries(present) }];
  });
  const required = here.filter((given) => own(given, 'required') === true).map((given) => own(given, 'name'));
  return members.length === 0 ? undefined : { properties: Object.fromEntries(members.reverse()), required };
}

/** An object schema with its own references and those of its members resolved. */
function followMembers(document: unknown, given: unknown): object {
  const schema = follow(document, given);
  const properties = own(schema, 'properties');
  const members = isObject(properties) ? Object.entries(properties).slice(0, MAX_PARAMS) : [];
  return {
    properties: Object.fromEntries(members.map(([name, member]) => [name, follow(document, member)])),
    required: own(schema, 'required'),
  };
}

/** The members of the successful answer. */
function answerOf(document: unknown, operation: unknown): unknown {
  const content = jsonContent(follow(document, own(own(operation, 'responses'), '200')));
  const schema = follow(document, own(content, 'schema'));
  // Only the names of the schema's members, because their descriptions are not part of an answer.
  const properties = own(schema, 'properties');
  return isObject(properties)
    ? Object.fromEntries(Object.keys(properties).map((name) => [name, null]))
    : own(content, 'example');
}

function jsonContent(holder: unknown): unknown {
  return own(own(holder, 'content'), 'application/json');
}
