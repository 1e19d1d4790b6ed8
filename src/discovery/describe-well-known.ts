import { own, plainText } from '../lib/untrusted.ts';
import type { Entry } from './entry.ts';
import { placeOf, readListedUrl } from './listed-url.ts';
import { isObject, keywordsOf, listOf, readTags, TEXT_LIMITS } from './market/market-text.ts';
import { type Description, describeInput, methodOf, NO_DESCRIPTION } from './read-description.ts';

/** The names that drafts and sellers give to the list of routes, and to the address of an item. */
const LISTS = ['items', 'resources', 'endpoints', 'routes'];
const ADDRESSES = ['resource', 'url', 'path'];
const MAX_ITEMS = 2000;

/**
 * What a seller's /.well-known/x402 says about one of its routes. NO_DESCRIPTION when no item has the route's address.
 * Several drafts exist and none is final, so all their names are accepted.
 */
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
  const tags = readTags(memberOf('tags'));
  return {
    name: plainText(memberOf('name', 'title', 'summary'), TEXT_LIMITS.name),
    label: plainText(memberOf('serviceName', 'label') ?? service, TEXT_LIMITS.label),
    description: plainText(memberOf('description'), TEXT_LIMITS.description),
    category: plainText(memberOf('category'), TEXT_LIMITS.category) || (tags[0] ?? ''),
    ...describeInput(
      inputOf(memberOf('params', 'parameters'), memberOf('input', 'inputSchema')),
      method ?? answered,
      url,
    ),
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

/** Converts a list of named parameters to the equivalent schema. Without a list it returns `input`. */
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
