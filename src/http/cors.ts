/** Headers that a page's script may read. Without them a buyer in a browser could not see the terms of payment. */
const EXPOSED = [
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'WWW-Authenticate',
  'Payment-Receipt',
  'X-Request-Id',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Retry-After',
  'ETag',
].join(', ');

/** Headers that a page's script may send. Stock x402 clients send Access-Control-Expose-Headers in the request, so it is allowed too. */
const ALLOWED = [
  'Content-Type',
  'PAYMENT-SIGNATURE',
  'X-PAYMENT',
  'Authorization',
  // MPP clients name in it what they can pay with, on the first request already.
  'Accept-Payment',
  'Access-Control-Expose-Headers',
  'If-None-Match',
  // MCP clients in browsers.
  'Mcp-Protocol-Version',
  'Mcp-Session-Id',
  'Last-Event-ID',
].join(', ');

/**
 * The CORS headers of every answer to buyers. Pages of any origin may read it, because nothing here depends on cookies.
 * Two constants do not need @fastify/cors, which copies its options for every request (figures in README.md beside this).
 */
export const CORS_HEADERS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': EXPOSED,
} as const;

/** With it a browser takes a body as what its type says, and never as a script or a page. Every answer has it. */
export const NOSNIFF = { 'x-content-type-options': 'nosniff' } as const;

/** Routes of an operator's machines. They say how the service does, so no page of another origin may read them. */
const CLOSED_TO_PAGES: ReadonlySet<string> = new Set(['/metrics', '/readyz']);

/** Whether the answers of this route, preflights too, have no CORS headers. */
export function isClosedToPages(route: string): boolean {
  return CLOSED_TO_PAGES.has(route);
}

/**
 * The additional headers of a preflight's answer. Every OPTIONS request counts as a preflight and passes no gate, because a browser cannot attach a
 * payment to it.
 */
export const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, HEAD, POST',
  'access-control-allow-headers': ALLOWED,
  // A day: the answer never changes, and browsers cap it themselves.
  'access-control-max-age': '86400',
};
