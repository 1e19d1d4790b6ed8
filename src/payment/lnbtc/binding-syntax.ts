import { jcs } from '../../lib/jcs.ts';

/** `requestBindingParams` of profile `http:1`. */
export interface HttpParams {
  readonly headers: readonly string[];
}

/** `requestBindingParams` of profile `mcp:1`. */
export interface McpParams {
  readonly server: string;
  readonly metadata: readonly string[];
}

/** RFC 9110's token, and the same in lower case. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const LOWER_TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
/** RFC 3986's absolute-URI: a scheme and something after it, no fragment. */
const ABSOLUTE_URI = /^[a-z][a-z0-9+.-]*:(?:[a-z0-9._~:/?[\]@!$&'()*+,;=-]|%[0-9a-f]{2})+$/i;
/** An authority with userinfo, even an empty one. A URL parser reads more than two slashes as two. */
const USERINFO = /^[a-z][a-z0-9+.-]*:\/\/+[^/?]*@/i;
/**
 * An authority without userinfo, then any visible ASCII except `#`: clients send more characters in paths and queries than RFC 3986 allows. A percent
 * sign always begins an escape, and an escape has two hex digits.
 */
const HTTP_URL =
  /^https?:\/\/(?:[a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::[0-9]+)?(?:[/?][!"$&-~]*(?:%[0-9a-f]{2}[!"$&-~]*)*)?$/i;
const REQUEST_HASH = /^[0-9a-f]{64}$/;

/** Names that are never bound: the payment itself cannot be part of what it pays for, and a progress token belongs to the transport. */
const NEVER_BOUND_HEADER = 'payment-signature';
const NEVER_BOUND_METADATA: readonly string[] = ['x402/payment', 'progressToken'];

/** Whether this can be an HTTP method. */
export function isMethod(value: unknown): value is string {
  return typeof value === 'string' && TOKEN.test(value);
}

/**
 * Whether this is an absolute http(s) URL as the scheme binds it: ASCII, whole escapes, no fragment, no userinfo. The text is checked as written and
 * never normalised.
 */
export function isHttpUrl(value: unknown): value is string {
  return typeof value === 'string' && HTTP_URL.test(value) && URL.canParse(value);
}

/** Whether this is a request hash on the wire: 64 lower-case hex characters. */
export function isRequestHash(value: unknown): value is string {
  return typeof value === 'string' && REQUEST_HASH.test(value);
}

/** A copy of the parameters of profile `http:1`. Null unless they have exactly its member and every name may be bound. Never throws. */
export function httpParams(params: unknown): HttpParams | null {
  const copy = membersOf(params, ['headers']);
  if (!copy || !isNameList(copy.headers)) return null;
  const { headers } = copy;
  return headers.every((name) => LOWER_TOKEN.test(name) && name !== NEVER_BOUND_HEADER) ? { headers } : null;
}

/** A copy of the parameters of profile `mcp:1`. Null unless they have exactly its members and every name may be bound. Never throws. */
export function mcpParams(params: unknown): McpParams | null {
  const copy = membersOf(params, ['server', 'metadata']);
  if (!copy || !isAbsoluteUri(copy.server) || !isNameList(copy.metadata)) return null;
  const { server, metadata } = copy;
  return metadata.some((name) => name === '' || NEVER_BOUND_METADATA.includes(name)) ? null : { server, metadata };
}

/** A copy as plain data. Null unless its members are exactly these. */
function membersOf(params: unknown, names: readonly string[]): Record<string, unknown> | null {
  const text = jcs(params);
  const copy: unknown = text === null ? null : JSON.parse(text);
  if (typeof copy !== 'object' || copy === null || Object.keys(copy).length !== names.length) return null;
  return names.every((name) => Object.hasOwn(copy, name)) ? (copy as Record<string, unknown>) : null;
}

/** Whether this is a list of strings in strictly ascending order, so that a set of names has one form. */
function isNameList(value: unknown): value is string[] {
  if (!Array.isArray(value)) return false;
  return value.every((name, index) => typeof name === 'string' && (index === 0 || value[index - 1] < name));
}

/**
 * Whether this is an absolute URI without userinfo, by RFC 3986 and by a URL parser. The parser finds userinfo in some URIs that have no authority.
 */
function isAbsoluteUri(value: unknown): value is string {
  if (typeof value !== 'string' || !ABSOLUTE_URI.test(value) || USERINFO.test(value)) return false;
  const url = URL.parse(value);
  return url !== null && url.username === '' && url.password === '';
}
