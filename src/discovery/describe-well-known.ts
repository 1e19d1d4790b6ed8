import { own } from '../lib/own-property.ts';
import type { Entry } from './entry.ts';
import { placeOf } from './listed-url.ts';
import { membersOf, plainJson, TEXT_LIMITS, wordsOfNames } from './market-text.ts';
import { plainText } from './plain-text.ts';
import { type Description, methodOf, SILENCE } from './read-description.ts';
import { bodyOf, listOf, MAX_PARAMS, type Param, paramOf, paramsOf } from './read-params.ts';

/** What drafts and sellers call the list of their routes, and the address in one of its items. */
const LISTS = ['items', 'resources', 'endpoints', 'routes'];
const ADDRESSES = ['resource', 'url', 'path'];
const MAX_ITEMS = 2000;
const PLACES: readonly string[] = ['path', 'query', 'body', 'header'];

/**
 * What a seller's /.well-known/x402 says of one of its routes. The drafts differ and none is settled, so that names are taken as they come;
 * silence when nothing in it is about this address.
 */
export function describeWellKnown(document: unknown, url: URL, method: Entry['method']): Description {
  const items = LISTS.flatMap((name) => listOf(own(document, name))).slice(0, MAX_ITEMS);
  const place = placeOf(url.href);
  const here = items.filter((item) => addressOf(item, url) === place);
  const item = here.find((one) => methodOf(own(one, 'method')) === method) ?? here[0];
  if (item === undefined) return SILENCE;
  const metadata = own(item, 'metadata');
  const said = (...names: readonly string[]) =>
    names.map((name) => own(item, name) ?? own(metadata, name)).find((value) => value !== undefined);
  const input = said('input', 'inputSchema');
  const params = readParams(said('params', 'parameters'), input, method);
  const tags = listOf(said('tags')).slice(0, 5);
  const words = [...tags.map((tag) => plainText(tag, TEXT_LIMITS.category)), wordsOfNames(said('output', 'outputSchema'))];
  return {
    name: plainText(said('name', 'title', 'summary'), TEXT_LIMITS.name),
    label: plainText(said('serviceName', 'label') ?? own(document, 'name') ?? own(document, 'title'), TEXT_LIMITS.label),
    description: plainText(said('description'), TEXT_LIMITS.description),
    category: plainText(said('category') ?? tags[0], TEXT_LIMITS.category),
    params,
    body: membersOf(own(input, 'body')).length > 0 ? plainJson(own(input, 'body')) : bodyOf(params),
    keywords: plainText(words.join(' '), TEXT_LIMITS.keywords),
    method: methodOf(said('method')),
  };
}

/** Where an item is, in the form in which places are compared; a path is one of this origin. */
function addressOf(item: unknown, url: URL): string | null {
  const given = ADDRESSES.map((name) => own(item, name)).find((value) => typeof value === 'string');
  const parsed = typeof given === 'string' ? URL.parse(given, url.origin) : null;
  return parsed === null ? null : placeOf(parsed.href);
}

/** A list of parameters, a JSON Schema, or the bazaar's form of both. */
function readParams(list: unknown, input: unknown, method: Entry['method']): Param[] {
  const place = method === 'POST' ? 'body' : 'query';
  const listed = listOf(list)
    .slice(0, MAX_PARAMS)
    .flatMap((given) => {
      const name = own(given, 'name');
      if (typeof name !== 'string' || name === '' || plainText(name, TEXT_LIMITS.param) !== name) return [];
      const said = String(own(given, 'in'));
      const where = PLACES.includes(said) ? (said as Param['in']) : place;
      return paramOf({ name, in: where, schema: own(given, 'schema') ?? given, required: own(given, 'required') === true });
    });
  if (listed.length > 0) return listed;
  if (typeof own(input, 'properties') === 'object') return paramsOf(input, undefined, place);
  return [
    ...paramsOf(undefined, own(input, 'pathParams'), 'path'),
    ...paramsOf(undefined, own(input, 'queryParams'), 'query'),
    ...paramsOf(undefined, own(input, 'body'), 'body'),
  ];
}
