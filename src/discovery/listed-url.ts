import { parseHostName } from '../lib/url.ts';

/** In characters. A longer URL is refused. */
const MAX_URL = 1000;
/** Characters that a URL must escape. `{` and `}` are allowed, because they mark placeholders. */
const NOT_IN_URLS = /[\s\p{Cc}\p{Cf}"'<>\\^`|]/u;

/** A third party's URL, checked by its form alone. Nothing is fetched. */
export interface ListedUrl {
  /** As it was written, so that a {placeholder} stays readable. */
  readonly url: string;
  /** With the port, unless it is the scheme's default. */
  readonly host: string;
  readonly origin: string;
  /** The path as written, without query and trailing slash. */
  readonly path: string;
}

/**
 * Reads an http(s) URL with a public host name. Null for credentials, for IP addresses and local names as host, and for characters that must be
 * escaped.
 * A listed `http://127.0.0.1/…` would send every agent that reads the list to its own machine.
 */
export function readListedUrl(value: unknown): ListedUrl | null {
  if (typeof value !== 'string' || value.length > MAX_URL || NOT_IN_URLS.test(value) || !URL.canParse(value))
    return null;
  const url = new URL(value);
  const isHttp = /^https?:\/\//i.test(value) && (url.protocol === 'https:' || url.protocol === 'http:');
  if (!isHttp || url.username !== '' || url.password !== '' || /%/.test(url.hostname)) return null;
  if ('fault' in parseHostName(url.hostname)) return null;
  const written = value.slice(value.indexOf('//') + 2);
  const path = (/\/[^?#]*/.exec(written)?.[0] ?? '/').replace(/\/+$/, '');
  return { url: value.replace(/#.*$/s, ''), host: url.host, origin: url.origin, path: path === '' ? '/' : path };
}

/** The key by which two sources' addresses are compared: host and path, without letter case, trailing slash and placeholder names. */
export function placeOf(url: string): string {
  const parsed = new URL(url);
  const path = decodeBraces(parsed.pathname)
    .replace(/\{[^{}/]*\}|:[A-Za-z]\w*/g, '{}')
    .replace(/\/+$/, '');
  return `${parsed.host}${path.toLowerCase()}`;
}

function decodeBraces(path: string): string {
  return path.replace(/%7B/gi, '{').replace(/%7D/gi, '}');
}
