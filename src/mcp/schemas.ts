import type { Tool as Listed } from '@modelcontextprotocol/sdk/types.js';
import type { z } from 'zod';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { describeParams, toJsonSchema } from '../http/openapi/param-docs.ts';

/** x402's PaymentRequired and our problems, by what tells them from an answer: each stands in every tool, so they are short. */
const PAYMENT_REQUIRED = {
  type: 'object',
  description: 'With isError: the call must be paid for (x402 PaymentRequired)',
  properties: { x402Version: { enum: [2] }, accepts: { type: 'array', items: { type: 'object' } } },
  required: ['x402Version', 'error', 'resource', 'accepts'],
};
const PROBLEM = {
  type: 'object',
  description: 'With isError: why there is no answer',
  properties: { code: { type: 'string' }, detail: { type: 'string' }, charged: { enum: [false, 'unknown'] } },
  required: ['code', 'detail', 'charged', 'status', 'requestId'],
};

/** A tool's arguments as JSON Schema, from the schema that parses them. */
export function inputSchema(endpoint: Pick<Endpoint<never>, 'params' | 'example'>): Listed['inputSchema'] {
  const params = describeParams(endpoint);
  const properties = params.map(({ name, description, schema }) => [name, { ...schema, description }]);
  return {
    type: 'object',
    properties: Object.fromEntries(properties),
    required: params.filter(({ required }) => required).map(({ name }) => name),
    additionalProperties: false,
  };
}

/**
 * What a tool's `structuredContent` can be. Failures stand in it too, because the official client holds those against the schema as well:
 * one that described the answer alone would make it throw at every demand for payment.
 */
export function outputSchema(result: z.ZodObject, priced: boolean): NonNullable<Listed['outputSchema']> {
  const { $defs, ...answer } = toJsonSchema(result, 'output');
  const anyOf = priced ? [answer, PAYMENT_REQUIRED, PROBLEM] : [answer, PROBLEM];
  // References are to the root of the whole.
  return { type: 'object', anyOf, ...($defs === undefined ? {} : { $defs }) };
}
