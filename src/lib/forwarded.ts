import type { IncomingHttpHeaders } from 'node:http';

/** Headers of RFC 7239 and RFC 9110, and nginx's usual one. Every header that begins with `x-forwarded-` counts too. */
const NAMES: ReadonlySet<string> = new Set(['forwarded', 'via', 'x-real-ip']);
const PREFIX = 'x-forwarded-';

/**
 * Whether a request has a header that proxies add and that clients have no reason to send. All usual ones count, because proxies add different ones.
 * A forwarded request without any of them is treated as the proxy's own request.
 */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  for (const name in headers) if (NAMES.has(name) || name.startsWith(PREFIX)) return true;
  return false;
}
