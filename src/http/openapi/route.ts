import type { Endpoint } from '../../catalogue/endpoint.ts';
import { pascal } from '../../catalogue/paths.ts';

export type Json = Record<string, unknown>;

/** A route that is no catalogue entry, in the form that Fastify's swagger plugin takes. */
export interface Operation {
  readonly method: 'GET' | 'POST';
  readonly url: string;
  readonly schema: Json;
}

export interface Declared {
  readonly operations: readonly Operation[];
  readonly schemas: Json;
}

export const json = (schema: Json, description: string): Json => ({
  description,
  content: { 'application/json': { schema } },
});

export const problemAnswer = (description: string): Json => ({
  description,
  content: { 'application/problem+json': { schema: { $ref: '#/components/schemas/Problem' } } },
});

/** By default all members are required. */
export const object = (properties: Json, required = Object.keys(properties)): Json => ({
  type: 'object',
  properties,
  required,
});

export const text = { type: 'string' };
export const integer = { type: 'integer' };
export const orNull = (type: string, description: string): Json => ({ type: [type, 'null'], description });
/** Without `additionalProperties` generated clients take it for an empty one. */
export const anyObject = { type: 'object', additionalProperties: true };

export const reference = (kind: 'headers' | 'responses' | 'schemas', name: string): Json => ({
  $ref: `#/components/${kind}/${name}`,
});

/** Generated clients name a type by it: `PaidFeesEstimate`. */
export function answerName({ access, path }: Pick<Endpoint<never>, 'access' | 'path'>): string {
  return pascal(`${access}${path}`);
}

export function problemName(endpoint: Pick<Endpoint<never>, 'access' | 'path'>): string {
  return `${answerName(endpoint)}Problem`;
}

export const COMPONENT_HEADERS: Json = {
  RequestId: { description: 'Names this answer; quote it when you report something', schema: { type: 'string' } },
  RetryAfter: { description: 'Seconds to wait', schema: { type: 'integer' } },
};
export const REQUEST_ID_HEADER: Json = { 'X-Request-Id': reference('headers', 'RequestId') };
export const RETRY_AFTER_HEADER: Json = { 'Retry-After': reference('headers', 'RetryAfter') };
