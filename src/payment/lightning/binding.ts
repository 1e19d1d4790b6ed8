import { createHash } from 'node:crypto';
import { jcs } from '../../lib/jcs.ts';
import { own } from '../../lib/untrusted.ts';

// Binds a request into an invoice by the scheme's profiles `http:1` and `mcp:1`: what is bound has one canonical form,
// and what the scheme cannot express is refused. Pure and total: no input makes it throw.

export interface Binding {
  readonly canonical: string;
  readonly hash: Uint8Array;
}

/** What a requirement declares of a binding: its profile, and what the buyer needs to make the same binding. */
export type BindingTerms =
  | { readonly profile: 'http:1'; readonly params: HttpParams }
  | { readonly profile: 'mcp:1'; readonly params: McpParams };

export type RequestBinding = Binding & BindingTerms;

/** The request that will run. Header values are joined field lines; names are lower-case. */
export interface HttpRequest {
  readonly method: string;
  /** Absolute: the configured origin and the raw request target, byte for byte. */
  readonly url: string;
  readonly body: Uint8Array;
  readonly headers?: Readonly<Record<string, string>>;
  /** Names of bound headers, as in `requestBindingParams.headers`; none by default. */
  readonly bound?: readonly string[];
}

export interface McpCall {
  readonly server: string;
  readonly name: string;
  /** `params.arguments` as received; `{}` when absent. */
  readonly arguments?: unknown;
  /** `params._meta` as received; `{}` when absent. Null is not absent. */
  readonly metadata?: unknown;
  readonly bound?: readonly string[];
}

interface BoundValue {
  readonly name: string;
  readonly valueHash: string;
}

/** The first byte of a hashed value, so that an absent value and an empty one have different hashes. */
const ABSENT = Buffer.of(0);
const PRESENT = Buffer.of(1);

/** Visible ASCII, spaces and tabs. */
const FIELD_VALUE = /^[\t -~]*$/;

/** Null when the scheme cannot express the request (a fragment, non-ASCII, bad names or values). Never throws. */
export function bindHttp({ method, url, body, headers, bound = [] }: HttpRequest): RequestBinding | null {
  const params = httpParams({ headers: bound });
  if (!params || !isMethod(method) || !isHttpUrl(url) || !(body instanceof Uint8Array)) return null;
  const values = boundValues(params.headers, headers, fieldText);
  return (
    values &&
    bindingOf(
      { domain: 'x402:exact:lnbtc:bolt11:http:1', method, url, bodyHash: sha256Hex(body), headers: values },
      { profile: 'http:1', params },
    )
  );
}

/** Null when the scheme cannot express the call. Never throws. */
export function bindMcp(call: McpCall): RequestBinding | null {
  const { name, arguments: given = {}, metadata = {}, bound = [] } = call;
  const params = mcpParams({ server: call.server, metadata: bound });
  if (!params || typeof name !== 'string' || name === '' || !isObject(given) || !isObject(metadata)) return null;
  const values = boundValues(params.metadata, metadata, jcs);
  const { server } = params;
  const domain = 'x402:exact:lnbtc:bolt11:mcp:1';
  return (
    values &&
    bindingOf(
      { domain, server, method: 'tools/call', name, arguments: given, metadata: values },
      { profile: 'mcp:1', params },
    )
  );
}

/** `jcs` refuses an object that is not plain. */
function isObject(value: unknown): boolean {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** The hash of each name's value, in order. Null when a value cannot be expressed as text. */
function boundValues(
  names: readonly string[],
  values: unknown,
  textOf: (value: unknown) => string | null,
): BoundValue[] | null {
  const hashes: BoundValue[] = [];
  for (const name of names) {
    const value = own(values, name);
    const text = value === undefined ? undefined : textOf(value);
    if (text === null) return null;
    const bytes = text === undefined ? ABSENT : Buffer.concat([PRESENT, Buffer.from(text, 'utf8')]);
    hashes.push({ name, valueHash: sha256Hex(bytes) });
  }
  return hashes;
}

/** Without surrounding spaces and tabs. Null for a value with other characters. */
function fieldText(value: unknown): string | null {
  return typeof value === 'string' && FIELD_VALUE.test(value) ? value.trim() : null;
}

function bindingOf(members: Record<string, unknown>, terms: BindingTerms): RequestBinding | null {
  const canonical = jcs(members);
  if (canonical === null) return null;
  return { ...terms, canonical, hash: createHash('sha256').update(canonical, 'utf8').digest() };
}

function sha256Hex(bytes: Uint8Array): string {
  return createHash('sha256').update(bytes).digest('hex');
}

interface HttpParams {
  readonly headers: readonly string[];
}

interface McpParams {
  readonly server: string;
  readonly metadata: readonly string[];
}

/** RFC 9110's token, and the same in lower case. */
const TOKEN = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
const LOWER_TOKEN = /^[!#$%&'*+.^_`|~0-9a-z-]+$/;
/** RFC 3986's absolute-URI: a scheme and something after it, no fragment. */
const ABSOLUTE_URI = /^[a-z][a-z0-9+.-]*:(?:[a-z0-9._~:/?[\]@!$&'()*+,;=-]|%[0-9a-f]{2})+$/i;
/** Userinfo, even an empty one. A URL parser reads more than two slashes as two. */
const USERINFO = /^[a-z][a-z0-9+.-]*:\/\/+[^/?]*@/i;
// Without userinfo, then any visible ASCII but `#`: clients send more than RFC 3986 allows. Escapes are whole.
const HTTP_URL =
  /^https?:\/\/(?:[a-z0-9._~-]+|\[[0-9a-f:.]+\])(?::[0-9]+)?(?:[/?][!"$&-~]*(?:%[0-9a-f]{2}[!"$&-~]*)*)?$/i;
const REQUEST_HASH = /^[0-9a-f]{64}$/;

/** Never bound: a payment cannot be part of what it pays for, and a progress token belongs to the transport. */
const NEVER_BOUND_HEADER = 'payment-signature';
const NEVER_BOUND_METADATA: readonly string[] = ['x402/payment', 'progressToken'];

function isMethod(value: unknown): value is string {
  return typeof value === 'string' && TOKEN.test(value);
}

/** A URL is checked as written and never normalised: ASCII, whole escapes, no fragment, no userinfo. */
function isHttpUrl(value: unknown): value is string {
  return typeof value === 'string' && HTTP_URL.test(value) && URL.canParse(value);
}

export function isRequestHash(value: unknown): value is string {
  return typeof value === 'string' && REQUEST_HASH.test(value);
}

/** A copy. Null unless it has exactly this member and every name may be bound. Never throws. */
export function httpParams(params: unknown): HttpParams | null {
  const copy = membersOf(params, ['headers']);
  if (!copy || !isNameList(copy.headers)) return null;
  const { headers } = copy;
  return headers.every((name) => LOWER_TOKEN.test(name) && name !== NEVER_BOUND_HEADER) ? { headers } : null;
}

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

/** Strings in strictly ascending order, so that a set of names has one form. */
function isNameList(value: unknown): value is string[] {
  if (!Array.isArray(value)) return false;
  return value.every((name, index) => typeof name === 'string' && (index === 0 || value[index - 1] < name));
}

/** Without userinfo, by RFC 3986 and by a URL parser, which finds some in URIs that have no authority. */
function isAbsoluteUri(value: unknown): value is string {
  if (typeof value !== 'string' || !ABSOLUTE_URI.test(value) || USERINFO.test(value)) return false;
  const url = URL.parse(value);
  return url !== null && url.username === '' && url.password === '';
}
