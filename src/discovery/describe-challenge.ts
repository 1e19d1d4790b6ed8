import { own } from '../lib/own-property.ts';
import { membersOf, plainJson, TEXT_LIMITS, wordsOfNames } from './market-text.ts';
import { plainText } from './plain-text.ts';
import { type Description, methodOf } from './read-description.ts';
import type { Challenge } from './read-offer.ts';
import { bodyOf, listOf, MAX_PARAMS, type Param, paramsOf } from './read-params.ts';

/** What a 402 says of its own route: version 2 in `resource` and the bazaar extension, version 1 in its entries. */
export function describeChallenge(challenge: Challenge): Description {
  return challenge.version === 2 ? describeV2(challenge.whole) : describeV1(challenge.accepts);
}

function describeV2(whole: unknown): Description {
  const resource = own(whole, 'resource');
  const bazaar = own(own(whole, 'extensions'), 'bazaar');
  const info = own(bazaar, 'info');
  const input = own(info, 'input');
  const schemas = own(own(own(own(bazaar, 'schema'), 'properties'), 'input'), 'properties');
  const from = (key: string, place: Param['in']) => paramsOf(own(schemas, key), own(input, key), place);
  const params = [...from('pathParams', 'path'), ...from('queryParams', 'query'), ...from('body', 'body')];
  const tags = listOf(own(resource, 'tags')).slice(0, 5);
  const words = [...tags.map((tag) => plainText(tag, TEXT_LIMITS.category)), wordsOfNames(exampleOf(own(info, 'output')))];
  return {
    // The protocol has a name for the service, none for the route.
    name: '',
    label: plainText(own(resource, 'serviceName'), TEXT_LIMITS.label),
    description: plainText(own(resource, 'description'), TEXT_LIMITS.description),
    category: plainText(own(info, 'category') ?? tags[0], TEXT_LIMITS.category),
    params,
    body: membersOf(own(input, 'body')).length > 0 ? plainJson(own(input, 'body')) : bodyOf(params),
    keywords: plainText(words.join(' '), TEXT_LIMITS.keywords),
    method: methodOf(own(input, 'method')),
  };
}

/** The example, or the output itself where a seller put it there at once. */
function exampleOf(output: unknown): unknown {
  return own(output, 'example') ?? own(output, 'properties') ?? output;
}

function describeV1(accepts: readonly unknown[]): Description {
  const entry = accepts.find((one) => own(one, 'description') || own(one, 'outputSchema')) ?? null;
  const schema = own(entry, 'outputSchema');
  const input = own(schema, 'input');
  const params = [
    ...fields(own(input, 'queryParams'), 'query'),
    ...fields(own(input, 'bodyFields') ?? own(input, 'body'), 'body'),
  ];
  return {
    name: '',
    label: '',
    description: plainText(own(entry, 'description'), TEXT_LIMITS.description),
    category: plainText(own(input, 'category'), TEXT_LIMITS.category),
    params,
    body: bodyOf(params),
    keywords: plainText(wordsOfNames(own(schema, 'output')), TEXT_LIMITS.keywords),
    method: methodOf(own(input, 'method')),
  };
}

/** Version 1 had a map of names to what each is: an object like a schema, or an example. */
function fields(map: unknown, place: Param['in']): Param[] {
  if (typeof own(map, 'properties') === 'object') return paramsOf(map, undefined, place);
  const described = membersOf(map, MAX_PARAMS);
  const isSchema = (member: unknown) => typeof member === 'object' && member !== null && !Array.isArray(member);
  return paramsOf(
    { properties: Object.fromEntries(described.filter(([, member]) => isSchema(member))) },
    Object.fromEntries(described.filter(([, member]) => !isSchema(member))),
    place,
  );
}
