import { own } from '../lib/own-property.ts';
import type { Entry } from './entry.ts';
import { isObject, keywordsOf, listOf, readTags, TEXT_LIMITS } from './market/market-text.ts';
import { plainText } from './plain-text.ts';
import { type Description, decodeBraces, describeInput, groupOf, methodOf, SILENCE } from './read-description.ts';

/** Paths that are looked through: more than any service describes in one file. */
const MAX_PATHS = 2000;
const MAX_PARAMS = 50;
/** References that lead on to references. */
const MAX_HOPS = 5;
const MAX_STEPS = 10;

/** What a seller's OpenAPI document (3.x, JSON) says of one of its routes; silence when it does not describe it. */
export function describeOpenApi(document: unknown, url: URL, answered: Entry['method']): Description {
  const found = findOperation(document, url, answered);
  if (!found) return SILENCE;
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

/** The path item of this very path before one whose template fits it; in it the method that answered before the other one. */
function findOperation(document: unknown, url: URL, answered: Entry['method']) {
  const prefixes = ['', ...listOf(own(document, 'servers')).slice(0, MAX_STEPS).map(prefixOf)];
  const asked = trimmed(decodeBraces(url.pathname));
  const paths = own(document, 'paths');
  const templates = isObject(paths) ? Object.keys(paths).slice(0, MAX_PATHS) : [];
  const fits = (test: (path: string) => boolean) =>
    templates.find((template) => prefixes.some((prefix) => test(trimmed(prefix + template))));
  const template = fits((path) => path === asked) ?? fits((path) => matches(path, asked));
  if (template === undefined) return null;
  const item = own(paths, template);
  const methods = [answered, 'GET', 'POST'].map((name) => methodOf(name) ?? answered);
  const method = methods.find((name) => isObject(own(item, name.toLowerCase())));
  return method === undefined ? null : { item, operation: own(item, method.toLowerCase()), method };
}

/** A server's path, which stands before every path of the document; its host is not asked about: the document is that of our host. */
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

/** OpenAPI's list of parameters as the group that other documents have; those of an operation come before those of its path. */
function parametersIn(document: unknown, parameters: readonly unknown[], place: string): object | undefined {
  const here = parameters.filter((given) => own(given, 'in') === place && typeof own(given, 'name') === 'string');
  const members = here.slice(0, MAX_PARAMS).map((given): [string, object] => {
    const schema = follow(document, own(given, 'schema'));
    const told = { description: own(given, 'description'), example: own(given, 'example') };
    const said = Object.entries(told).filter(([, value]) => value !== undefined);
    return [String(own(given, 'name')), { ...(isObject(schema) ? schema : {}), ...Object.fromEntries(said) }];
  });
  const required = here.filter((given) => own(given, 'required') === true).map((given) => own(given, 'name'));
  return members.length === 0 ? undefined : { properties: Object.fromEntries(members.reverse()), required };
}

/** A schema of an object with its references followed, its members' too. */
function followMembers(document: unknown, given: unknown): object {
  const schema = follow(document, given);
  const properties = own(schema, 'properties');
  const members = isObject(properties) ? Object.entries(properties).slice(0, MAX_PARAMS) : [];
  return {
    properties: Object.fromEntries(members.map(([name, member]) => [name, follow(document, member)])),
    required: own(schema, 'required'),
  };
}

/** The members of what is answered when all is well. */
function answerOf(document: unknown, operation: unknown): unknown {
  const content = jsonContent(follow(document, own(own(operation, 'responses'), '200')));
  const schema = follow(document, own(content, 'schema'));
  // Of a schema the names alone: what describes them is not in the answer.
  const properties = own(schema, 'properties');
  return isObject(properties)
    ? Object.fromEntries(Object.keys(properties).map((name) => [name, null]))
    : own(content, 'example');
}

function jsonContent(holder: unknown): unknown {
  return own(own(holder, 'content'), 'application/json');
}

/** What a local reference stands for; one that leads elsewhere or in circles stands for nothing. Nothing is fetched. */
function follow(document: unknown, value: unknown): unknown {
  let target = value;
  for (let hops = 0; hops <= MAX_HOPS; hops += 1) {
    const reference = own(target, '$ref');
    if (typeof reference !== 'string') return target;
    if (!reference.startsWith('#/')) return undefined;
    const steps = reference.slice(2).split('/').slice(0, MAX_STEPS);
    target = steps.reduce<unknown>((at, step) => own(at, step.replaceAll('~1', '/').replaceAll('~0', '~')), document);
  }
  return undefined;
}
