import type { Endpoint } from '../catalogue/endpoint.ts';
import { MISSING, parseParams, type Query } from '../catalogue/params.ts';
import { BadParameter } from '../errors.ts';

/**
 * Returns a function that says in words what is wrong with a request's parameters, so that no client signs before it hears of it. Null when nothing is
 * wrong, and when that cannot be said now. A request without parameters is judged once.
 */
export function createFaultFinder<S>(endpoint: Endpoint<S>, sources: S): (query: Query) => string | null {
  const without = faultOf(endpoint, {}, sources);
  return (query) => {
    for (const _name in query) return faultOf(endpoint, query, sources);
    return without;
  };
}

function faultOf<S>(endpoint: Endpoint<S>, query: Query, sources: S): string | null {
  try {
    endpoint.checkParams(parseParams(endpoint, query), sources);
    return null;
  } catch (error) {
    if (!(error instanceof BadParameter)) return null;
    const words = error.errors?.map(({ path, message }) =>
      message.startsWith(MISSING) ? `${path} is ${message}` : `${path}: ${message}`,
    );
    return words?.join('; ') ?? null;
  }
}
