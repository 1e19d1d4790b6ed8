import type { Endpoint } from '../../../catalogue/endpoint.ts';

/** Added to every route's hint: stock clients refuse assets that they do not know until they are allowed. */
const HOW_TO_PAY = 'Pay with any x402 v2 client (allow this asset in its spend controls) and repeat the request.';

/**
 * The 402's body for a route: exactly `{ hint }`. The hint names the route's content, the free summary if there is one, and missing parameters. It is
 * text and not bytes, because Node sends text with the head in one write.
 */
export function createHint(endpoint: Endpoint<never>): (query: Record<string, unknown>) => string {
  const required = Object.entries(endpoint.params.shape)
    .filter(([, schema]) => !schema.safeParse(undefined).success)
    .map(([name]) => name);
  const free = endpoint.freeSummary ? ` A free summary is at GET ${endpoint.freeSummary}.` : '';
  const body = (missing: readonly string[]) => {
    const lacks = missing.length > 0 ? ` Missing: ${missing.join(', ')}.` : '';
    return JSON.stringify({ hint: `${endpoint.summary}${free}${lacks} ${HOW_TO_PAY}` });
  };
  const none = body([]);
  const all = body(required);
  return (query) => {
    const missing = required.filter((name) => query[name] === undefined || query[name] === '');
    if (missing.length === 0) return none;
    return missing.length === required.length ? all : body(missing);
  };
}
