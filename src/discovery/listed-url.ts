import { parseHostName } from '../lib/host-name.ts';

/** Longer ones are no address that anybody would call. */
const MAX_URL = 1000;
/** What no URL holds unescaped, `{` and `}` apart: they mark placeholders. */
const NOT_IN_URLS = /[\s\p{Cc}\p{Cf}"'<>\\^`|]/u;

/** A stranger's address, judged by its form alone: nothing is asked of it. */
export interface ListedUrl {
  /** As it was written, so that a {placeholder} stays readable. */
  readonly url: string;
  /** With the port where it is not the scheme's. */
  readonly host: string;
  readonly origin: string;
  /** Path as written, without query and trailing slash. */
  readonly path: string;
}

/**
 * Reads an http(s) address with a public host name, or null: no credentials, no addresses or local names for hosts, and nothing in it that
 * must be escaped. Listing `http://127.0.0.1/…` would send every agent that reads the list to its own machine.
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

/** Host and path in the one form in which two sources are compared: letter case, a trailing slash and the names of placeholders do not count. */
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
