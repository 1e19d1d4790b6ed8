import type { Endpoint } from '../catalogue/endpoint.ts';
import { parseParams, type Query } from '../catalogue/params.ts';
import { BadParameter, type ParameterError } from '../errors.ts';

/** What a URL of ours may have: no request needs more over one transport than over the other. */
const MAX_CHARS = 8192;

/**
 * Reads a tool's arguments as its parameters, or throws BadParameter naming each fault. They are parsed by the very schema of the HTTP
 * route, so the same request is the same request whatever brought it; models write numbers and booleans where a query has text, so both
 * are taken. Unknown names are faults on free tools too: a model that is told corrects itself.
 */
export function readArguments(
  endpoint: Pick<Endpoint<never>, 'params'>,
  given: unknown,
): { query: Query; params: unknown } {
  const query = queryOf(given);
  return { query, params: parseParams(endpoint, query, true) };
}

function queryOf(given: unknown): Query {
  const errors: ParameterError[] = [];
  const entries: [string, string][] = [];
  let chars = 0;
  for (const [path, value] of Object.entries((given ?? {}) as object)) {
    const text = textOf(value);
    chars += path.length + (text?.length ?? 0);
    if (text === null) errors.push({ path, message: 'must be a string, a number or a boolean' });
    else entries.push([path, text]);
  }
  if (chars > MAX_CHARS) errors.push({ path: 'arguments', message: `at most ${MAX_CHARS} characters in all` });
  if (errors.length > 0) throw new BadParameter(errors);
  // Own properties whatever they are called; `__proto__` is an unknown parameter like any other.
  return Object.fromEntries(entries);
}

function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}
