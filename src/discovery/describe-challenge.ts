import { own, plainText } from '../lib/untrusted.ts';
import type { Entry } from './entry.ts';
import { keywordsOf, listOf, readTags, TEXT_LIMITS } from './market/market-text.ts';
import { type Description, describeInput, groupOf, methodOf } from './read-description.ts';
import type { Challenge } from './read-offer.ts';

/** What a 402 says about its own route. Version 2 says it in `resource` and the bazaar extension, version 1 in its `accepts` entries. */
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
    // The protocol names the service, not the route.
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
    // Version 1 describes input in groups, which hold a description or an example of each member. Without a group the input holds only the method.
    ...describeInput(hasGroup(input) ? input : undefined, method ?? answered, url),
    keywords: keywordsOf([], own(schema, 'output')),
    method,
  };
}

function hasGroup(input: unknown): boolean {
  return ['queryParams', 'bodyFields', 'bodyParams', 'pathParams', 'body', 'properties'].some((key) => own(input, key));
}
