/** What a page's script may read of an answer; without this a browser buyer could not see what to pay. */
const EXPOSED = [
  'PAYMENT-REQUIRED',
  'PAYMENT-RESPONSE',
  'X-Request-Id',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Retry-After',
  'ETag',
].join(', ');

/** What a page's script may send. Stock x402 clients put Access-Control-Expose-Headers on the request, so it is allowed too. */
const ALLOWED = [
  'Content-Type',
  'PAYMENT-SIGNATURE',
  'X-PAYMENT',
  'Access-Control-Expose-Headers',
  'If-None-Match',
  // MCP clients in browsers.
  'Mcp-Protocol-Version',
  'Mcp-Session-Id',
  'Last-Event-ID',
].join(', ');

/**
 * The headers of every answer that let pages of any origin read it: nothing here depends on cookies, so an origin proves nothing.
 * Two constants do not need @fastify/cors, which copies its options for every request (figures in README.md beside this).
 */
export const CORS_HEADERS = {
  'access-control-allow-origin': '*',
  'access-control-expose-headers': EXPOSED,
} as const;

/** What a preflight is answered with on top. Every OPTIONS is one to us: a browser cannot attach a payment to it, so no gate may see it first. */
export const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'GET, HEAD, POST',
  'access-control-allow-headers': ALLOWED,
  // A day: the answer never changes, and browsers cap it themselves.
  'access-control-max-age': '86400',
};
