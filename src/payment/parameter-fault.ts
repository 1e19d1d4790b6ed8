import type { Endpoint } from '../catalogue/endpoint.ts';
import { parseParams, type Query } from '../catalogue/params.ts';
import { BadParameter, type ParameterError } from '../errors.ts';

/**
 * Returns a function that says in words what is wrong with a request's parameters, so that no client signs before it hears of it. Null when nothing is
 * wrong, and when that cannot be said now. A request without parameters is judged once, when the first one comes: at the start, every
 * route would be judged.
 */
export function createFaultFinder<S>(endpoint: Endpoint<S>, sources: S): (query: Query) => string | null {
  let without: string | null | undefined;
  return (query) => {
    for (const _name in query) return faultOf(endpoint, query, sources);
    if (without === undefined) without = faultOf(endpoint, {}, sources);
    return without;
  };
}

function faultOf<S>(endpoint: Endpoint<S>, query: Query, sources: S): string | null {
  try {
    endpoint.checkParams(parseParams(endpoint, query), sources);
    return null;
  } catch (error) {
    if (!(error instanceof BadParameter)) return null;
    return error.errors?.map(inWords).join('; ') ?? null;
  }
}

/** A message that says of a parameter that it is not there, such as `required: a host name`. */
const ABSENT = /^(?:missing|required)\b/;

function inWords({ path, message }: ParameterError): string {
  return ABSENT.test(message) ? message.replace(ABSENT, `${path} is missing`) : `${path}: ${message}`;
}
