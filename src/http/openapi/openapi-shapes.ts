/** A piece of an OpenAPI document. */
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
/** An object whose members are not described here. Without `additionalProperties` generated clients take it for an empty one. */
export const anyObject = { type: 'object', additionalProperties: true };
