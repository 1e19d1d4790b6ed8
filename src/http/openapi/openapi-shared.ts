import type { Endpoint } from '../../catalogue/endpoint.ts';
import { pascal } from '../../catalogue/paths.ts';
import type { Json } from './openapi-shapes.ts';

/** A reference to a component of the document. */
export const reference = (kind: 'headers' | 'responses' | 'schemas', name: string): Json => ({
  $ref: `#/components/${kind}/${name}`,
});

/** The component of an entry's answer: `/fees/estimate`, paid, is `PaidFeesEstimate`. Generated clients name their types by it. */
export function answerName({ access, path }: Pick<Endpoint<never>, 'access' | 'path'>): string {
  return pascal(`${access}${path}`);
}

/** The component of the problem of an entry whose problems have members of their own. */
export function problemName(endpoint: Pick<Endpoint<never>, 'access' | 'path'>): string {
  return `${answerName(endpoint)}Problem`;
}

/** The headers that many answers have. */
export const COMPONENT_HEADERS: Json = {
  RequestId: { description: 'Names this answer; quote it when you report something', schema: { type: 'string' } },
  RetryAfter: { description: 'Seconds to wait', schema: { type: 'integer' } },
};
export const REQUEST_ID_HEADER: Json = { 'X-Request-Id': reference('headers', 'RequestId') };
export const RETRY_AFTER_HEADER: Json = { 'Retry-After': reference('headers', 'RetryAfter') };
