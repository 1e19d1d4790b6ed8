import type { Tool as Listed } from '@modelcontextprotocol/sdk/types.js';
import type { z } from 'zod';
import type { Endpoint } from '../catalogue/endpoint.ts';
import { describeParams, toJsonSchema } from '../http/openapi/param-docs.ts';

/** The members that distinguish x402's PaymentRequired and our problems from an answer. They are short, because every tool's schema repeats them. */
const PAYMENT_REQUIRED = {
  type: 'object',
  description: 'With isError: the call must be paid for (x402 PaymentRequired)',
  properties: { x402Version: { enum: [2] }, accepts: { type: 'array', items: { type: 'object' } } },
  required: ['x402Version', 'error', 'resource', 'accepts'],
};
const PROBLEM = {
  type: 'object',
  description: 'With isError: why there is no answer',
  properties: { code: { type: 'string' }, detail: { type: 'string' }, charged: { enum: [false, true, 'unknown'] } },
  required: ['code', 'detail', 'charged', 'status', 'requestId'],
};

/** JSON Schema of a tool's arguments, made from the schema that parses them. */
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
 * JSON Schema of a tool's `structuredContent`. It allows failures too, because the official client checks every `structuredContent` against it.
 * Otherwise that client would throw at every demand for payment.
 */
export function outputSchema(result: z.ZodObject, priced: boolean): NonNullable<Listed['outputSchema']> {
  const { $defs, ...answer } = toJsonSchema(result, 'output');
  const anyOf = priced ? [answer, PAYMENT_REQUIRED, PROBLEM] : [answer, PROBLEM];
  // `$defs` stays at the root, because references start there.
  return { type: 'object', anyOf, ...($defs === undefined ? {} : { $defs }) };
}
