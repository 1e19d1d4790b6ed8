import type { Endpoint } from '../../catalogue/endpoint.ts';
import { pascal } from '../../catalogue/paths.ts';

// The pieces of which every OpenAPI declaration is made.

export type Json = Record<string, unknown>;

/** A route that is no catalogue entry, in the form in which Fastify's swagger plugin takes it. */
export interface Operation {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly schema: Json;
}

/** The routes that are no catalogue entries, in the document's order, and the component schemas that they refer to. */
export interface Declared {
  readonly operations: readonly Operation[];
  readonly schemas: Json;
}

/** An answer of JSON. */
export const json = (schema: Json, description: string): Json => ({
  description,
  content: { 'application/json': { schema } },
});

/** An answer of RFC 9457 problem details. */
export const problemAnswer = (description: string): Json => ({
  description,
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
});

/** An object with these members; by default all of them are required. */
export const object = (properties: Json, required = Object.keys(properties)): Json => ({
  type: 'object',
  properties,
  required,
});

export const text = { type: 'string' };
export const integer = { type: 'integer' };
/** An object of any members. Without `additionalProperties` generated clients take it for an empty one. */
export const anyObject = { type: 'object', additionalProperties: true };

/** A reference to a component of the document. */
export const reference = (kind: 'headers' | 'responses' | 'schemas', name: string): Json => ({
  $ref: `#/components/${kind}/${name}`,
});

/** The component of an entry's answer, by which generated clients name a type: `PaidFeesEstimate`. */
export function answerName({ access, path }: Pick<Endpoint<never>, 'access' | 'path'>): string {
  return pascal(`${access}${path}`);
}

/** The component of the problem of an entry with `problemMembers`. */
export function problemName(endpoint: Pick<Endpoint<never>, 'access' | 'path'>): string {
  return `${answerName(endpoint)}Problem`;
}

export const COMPONENT_HEADERS: Json = {
  RequestId: { description: 'Names this answer; quote it when you report something', schema: { type: 'string' } },
  RetryAfter: { description: 'Seconds to wait', schema: { type: 'integer' } },
};
export const REQUEST_ID_HEADER: Json = { 'X-Request-Id': reference('headers', 'RequestId') };
export const RETRY_AFTER_HEADER: Json = { 'Retry-After': reference('headers', 'RetryAfter') };
