import type { IncomingHttpHeaders } from 'node:http';

/** Of RFC 7239 and RFC 9110, and nginx's usual one; beside them whatever begins with `x-forwarded-`. */
const NAMES: ReadonlySet<string> = new Set(['forwarded', 'via', 'x-real-ip']);
const PREFIX = 'x-forwarded-';

/**
 * Whether a request has a header that proxies write on what they pass on, and that no client has a reason to send. All usual ones count, because
 * each proxy writes its own choice of them: what this misses is taken for the proxy's own request.
 */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  for (const name in headers) if (NAMES.has(name) || name.startsWith(PREFIX)) return true;
  return false;
}
