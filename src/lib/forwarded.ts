import type { IncomingHttpHeaders } from 'node:http';

/**
 * Headers of RFC 7239, RFC 9110 and RFC 8586, nginx's usual one, and those in which hosts and proxies name the client:
 * Cloudflare, Akamai, Fly, Fastly, Envoy, Apache and load balancers. Every header that begins with `x-forwarded-`
 * counts too.
 */
const NAMES: ReadonlySet<string> = new Set([
  ...['forwarded', 'via', 'cdn-loop', 'x-real-ip', 'cf-connecting-ip', 'true-client-ip', 'fly-client-ip'],
  ...['fastly-client-ip', 'x-envoy-external-address', 'x-client-ip', 'x-cluster-client-ip'],
]);
const PREFIX = 'x-forwarded-';

/**
 * Whether a request has a header that proxies add and that clients have no reason to send. All usual ones count, because proxies add different ones.
 * A forwarded request without any of them is treated as the proxy's own request.
 */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  for (const name in headers) if (NAMES.has(name) || name.startsWith(PREFIX)) return true;
  return false;
}
