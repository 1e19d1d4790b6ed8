import { own } from '../lib/own-property.ts';
import type { Entry } from './entry.ts';
import { membersOf, plainJson, TEXT_LIMITS, wordsOfNames } from './market-text.ts';
import { plainText } from './plain-text.ts';
import { type Description, SILENCE } from './read-description.ts';
import { bodyOf, listOf, MAX_PARAMS, type Param, paramOf, paramsOf } from './read-params.ts';

/** Paths that are looked through: more than any service describes in one file. */
const MAX_PATHS = 2000;
/** References that lead on to references. */
const MAX_HOPS = 5;
const PLACES = ['path', 'query', 'header'];
/** What pays or proves who one is goes by itself. */
const NOT_PARAMS = /^(authorization|cookie|x-payment|payment-signature)$/i;

/** What a seller's OpenAPI document (3.x, JSON) says of one of its routes; silence when it does not describe it. */
export function describeOpenApi(document: unknown, url: URL, method: Entry['method']): Description {
  const found = findOperation(document, url, method);
  if (!found) return SILENCE;
  const { operation, shared } = found;
  const { params: inBody, example } = readBody(document, operation);
  const params = [...readParams(document, [...listOf(own(operation, 'parameters')), ...shared]), ...inBody];
  const tags = listOf(own(operation, 'tags')).slice(0, 5);
  const summary = plainText(own(operation, 'summary') ?? own(operation, 'operationId'), TEXT_LIMITS.name);
  const words = [...tags.map((tag) => plainText(tag, TEXT_LIMITS.category)), wordsOfNames(resultOf(document, operation))];
  return {
    name: summary,
    label: plainText(own(own(document, 'info'), 'title'), TEXT_LIMITS.label),
    description: plainText(own(operation, 'description'), TEXT_LIMITS.description) || summary,
    category: plainText(tags[0], TEXT_LIMITS.category),
    params: params.slice(0, MAX_PARAMS),
    body: example ?? bodyOf(params),
    keywords: plainText(words.join(' '), TEXT_LIMITS.keywords),
    method: found.method,
  };
}

/** The path item of this very path before one whose template fits it; in it the method that answered before the other one. */
function findOperation(document: unknown, url: URL, method: Entry['method']) {
  const prefixes = ['', ...listOf(own(document, 'servers')).slice(0, 10).map(prefixOf)];
  const asked = decodeBraces(url.pathname).replace(/\/+$/, '');
  const paths = own(document, 'paths');
  const templates = Object.keys(typeof paths === 'object' && paths !== null ? paths : {}).slice(0, MAX_PATHS);
  const fits = (test: (template: string) => boolean) =>
    templates.find((template) => prefixes.some((prefix) => test((prefix + template).replace(/\/+$/, ''))));
  const template = fits((full) => full === asked) ?? fits((full) => matches(full, asked));
  if (template === undefined) return null;
  const item = own(paths, template);
  const order: readonly Entry['method'][] = method === 'GET' ? ['GET', 'POST'] : ['POST', 'GET'];
  for (const name of order) {
    const operation = own(item, name.toLowerCase());
    if (typeof operation === 'object' && operation !== null) {
      return { operation, method: name, shared: listOf(own(item, 'parameters')) };
    }
  }
  return null;
}

/** A server's path, which stands before every path of the document; its host is not asked about: the document is that of our host. */
function prefixOf(server: unknown): string {
  const url = URL.parse(String(own(server, 'url')), 'https://server.invalid');
  return url === null ? '' : url.pathname.replace(/\/+$/, '');
}

function matches(template: string, path: string): boolean {
  const [wanted, given] = [template.split('/'), path.split('/')];
  return wanted.length === given.length && wanted.every((part, at) => /^\{.+\}$/.test(part) || part === given[at]);
}

function decodeBraces(path: string): string {
  return path.replace(/%7B/gi, '{').replace(/%7D/gi, '}');
}

function readParams(document: unknown, parameters: readonly unknown[]): Param[] {
  return parameters.slice(0, MAX_PARAMS).flatMap((given) => {
    const parameter = follow(document, given);
    const [name, place] = [own(parameter, 'name'), own(parameter, 'in')];
    if (typeof name !== 'string' || !PLACES.includes(String(place)) || NOT_PARAMS.test(name)) return [];
    if (name === '' || plainText(name, TEXT_LIMITS.param) !== name) return [];
    return paramOf({
      name,
      in: place as Param['in'],
      schema: follow(document, own(parameter, 'schema')),
      required: own(parameter, 'required') === true,
      description: own(parameter, 'description'),
      example: own(parameter, 'example'),
    });
  });
}

function readBody(document: unknown, operation: unknown) {
  const content = jsonContent(follow(document, own(operation, 'requestBody')));
  const schema = follow(document, own(content, 'schema'));
  const example = own(content, 'example') ?? own(schema, 'example');
  const properties = membersOf(own(schema, 'properties'), MAX_PARAMS);
  const resolved = Object.fromEntries(properties.map(([name, member]) => [name, follow(document, member)]));
  const params = paramsOf({ required: own(schema, 'required'), properties: resolved }, example, 'body');
  return { params, example: example === undefined ? null : plainJson(example) };
}

/** The members of what is answered when all is well. */
function resultOf(document: unknown, operation: unknown): unknown {
  const content = jsonContent(follow(document, own(own(operation, 'responses'), '200')));
  return own(follow(document, own(content, 'schema')), 'properties') ?? own(content, 'example');
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
    const steps = reference.slice(2).split('/').slice(0, 10);
    target = steps.reduce<unknown>((at, step) => own(at, step.replaceAll('~1', '/').replaceAll('~0', '~')), document);
  }
  return undefined;
}
