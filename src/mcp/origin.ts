/** DNS rebinding cannot produce these names: a page under one of them is served by this machine itself. */
const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * True when a request with this Origin header may call the tools. MCP requires the check against DNS rebinding.
 * Pages of every site may call, as on all our routes: neither a cookie nor a network position gives a caller anything here.
 * Two kinds are refused. The first is an opaque or malformed origin (`null` and the like).
 * The second is an origin that equals the request's Host but not our configured address: that is a rebound name.
 */
export function mayCallFrom(origin: string | undefined, host: string | undefined, publicOrigin: string): boolean {
  if (origin === undefined) return true;
  if (!/^https?:\/\/[^/?#\s]+$/i.test(origin) || !URL.canParse(origin)) return false;
  const from = new URL(origin);
  if (LOOPBACK.has(from.hostname) || from.host === new URL(publicOrigin).host) return true;
  return from.host !== host?.toLowerCase();
}
