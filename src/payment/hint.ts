import type { Endpoint } from '../catalogue/endpoint.ts';

/**
 * Prepares the hint of a route, for people who read its 402: the route's content, the free summary if there is one, missing parameters, and
 * `howToPay`. `write` makes the protocol's form of it. It is text and not bytes, because Node sends text with the head in one write.
 */
export function createHint(
  endpoint: Endpoint<never>,
  howToPay: string,
  write: (hint: string) => string,
): (query: Readonly<Record<string, unknown>>) => string {
  const required = Object.entries(endpoint.params.shape)
    .filter(([, schema]) => !schema.safeParse(undefined).success)
    .map(([name]) => name);
  const free = endpoint.freeSummary ? ` A free summary is at GET ${endpoint.freeSummary}.` : '';
  const body = (missing: readonly string[]) => {
    const lacks = missing.length > 0 ? ` Missing: ${missing.join(', ')}.` : '';
    return write(`${endpoint.summary}${free}${lacks} ${howToPay}`);
  };
  const none = body([]);
  const all = body(required);
  return (query) => {
    const missing = required.filter((name) => query[name] === undefined || query[name] === '');
    if (missing.length === 0) return none;
    return missing.length === required.length ? all : body(missing);
  };
}
