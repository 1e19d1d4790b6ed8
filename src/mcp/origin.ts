/** Names that no rebinding can produce: whoever serves a page there already is on this machine. */
const LOOPBACK = new Set(['localhost', '127.0.0.1', '[::1]']);

/**
 * Whether a request may come from this Origin, which MCP makes servers check against DNS rebinding. Like every route of ours, the tools
 * serve pages of any site: no cookie and no network position gives a caller anything here. What no honest page sends is refused: an origin
 * that is none (`null` and the like), and one that is its own server by Host but not by our configuration, which is a rebound name.
 */
export function mayCallFrom(origin: string | undefined, host: string | undefined, publicOrigin: string): boolean {
  if (origin === undefined) return true;
  if (!/^https?:\/\/[^/?#\s]+$/i.test(origin) || !URL.canParse(origin)) return false;
  const from = new URL(origin);
  if (LOOPBACK.has(from.hostname) || from.host === new URL(publicOrigin).host) return true;
  return from.host !== host?.toLowerCase();
}
