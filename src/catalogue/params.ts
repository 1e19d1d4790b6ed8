import { z } from 'zod';
import { BadParameter, type ParameterError } from '../errors.ts';
import type { Endpoint } from './endpoint.ts';

/** Query parameters as the router gives them. A repeated parameter is an array. */
export type Query = Record<string, unknown>;

/**
 * Parses an endpoint's query parameters, or throws BadParameter with every fault.
 * With `strict` (priced routes) it also refuses unknown and repeated names, so that no buyer pays for a typing error.
 */
export function parseParams(endpoint: Pick<Endpoint<never>, 'params'>, query: Query, strict: boolean): unknown {
  const errors: ParameterError[] = [];
  const known = endpoint.params.shape;
  const given: Query = {};
  for (const [path, value] of Object.entries(query)) {
    if (!Object.hasOwn(known, path)) {
      if (strict) errors.push({ path, message: 'no such parameter' });
    } else if (Array.isArray(value) && strict) {
      errors.push({ path, message: 'given more than once' });
    } else {
      given[path] = Array.isArray(value) ? value[0] : value;
    }
  }
  const parsed = endpoint.params.safeParse(given);
  if (!parsed.success) {
    for (const issue of parsed.error.issues) {
      errors.push({ path: String(issue.path[0] ?? ''), message: issue.message });
    }
  }
  if (errors.length > 0 || !parsed.success) throw new BadParameter(errors);
  return parsed.data;
}

/** A whole number in the query: digits only, within `bounds`. OpenAPI shows it as an integer. */
export function integerParam(bounds: { min: number; max: number; default: number; description: string }) {
  const { min, max, description } = bounds;
  const message = `a whole number from ${min} to ${max}`;
  return z
    .string()
    .regex(/^\d{1,15}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message)
    .default(bounds.default)
    .meta({ description, type: 'integer', minimum: min, maximum: max, default: bounds.default });
}
