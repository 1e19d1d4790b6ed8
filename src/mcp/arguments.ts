import type { Endpoint } from '../catalogue/endpoint.ts';
import { faultOf, MOST_NAMED, parseParams, type Query } from '../catalogue/params.ts';
import { BadParameter, type ParameterError } from '../errors.ts';

/** The limit of our URLs, so that both transports take the same requests. */
const MAX_CHARS = 8192;
const TOO_LONG: ParameterError = { path: 'arguments', message: `at most ${MAX_CHARS} characters in all` };

/**
 * Parses a tool's arguments, or throws BadParameter with their faults, at most ten of unknown or unreadable ones.
 * The HTTP route's own schema parses them, so a request is the same over both transports.
 * Numbers and booleans count as their text, because models write them where a query has text.
 * Unknown names are faults on free tools too, because a model that sees the fault corrects its call.
 */
export function readArguments(
  endpoint: Pick<Endpoint<never>, 'params'>,
  given: unknown,
): { query: Query; params: unknown } {
  const query = queryOf(given);
  return { query, params: parseParams(endpoint, query) };
}

function queryOf(given: unknown): Query {
  const errors: ParameterError[] = [];
  const entries: [string, string][] = [];
  let chars = 0;
  for (const [path, value] of Object.entries((given ?? {}) as object)) {
    const text = textOf(value);
    chars += path.length + (text?.length ?? 0);
    if (chars > MAX_CHARS && errors.length >= MOST_NAMED) break;
    if (text !== null) entries.push([path, text]);
    else if (errors.length < MOST_NAMED) errors.push(faultOf(path, 'must be a string, a number or a boolean'));
  }
  if (chars > MAX_CHARS) throw new BadParameter([...errors.slice(0, MOST_NAMED - 1), TOO_LONG]);
  if (errors.length > 0) throw new BadParameter(errors);
  // `fromEntries` makes own properties only, so `__proto__` is an unknown parameter like any other.
  return Object.fromEntries(entries);
}

function textOf(value: unknown): string | null {
  if (typeof value === 'string') return value;
  return typeof value === 'number' || typeof value === 'boolean' ? String(value) : null;
}
