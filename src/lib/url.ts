import { domainToASCII } from 'node:url';
import { getDomain, parse } from 'tldts';

// Host names and request targets in the one form in which they are compared.

/** RFC 1035, 2.3.4: 255 octets are 253 characters of text. */
const MAX_NAME = 253;

/** What the URL parser behind `domainToASCII` would silently cut off, decode or drop. */
const NOT_IN_NAMES = /[\s\p{Cc}/?#@:\\%[\]<>^|"`{}*]/u;

/** RFC 1035's letters, digits and hyphens; underscores as in `_dmarc` (RFC 8552). */
const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;

/** The URL standard's "ends in a number": a resolver may read such a name as an IPv4 address. */
const NUMERIC = /^(\d+|0x[0-9a-f]*)$/;

/** RFC 6761, 6762, 7686, 8375, 9476 and ICANN's `internal`: the public DNS never answers for them. */
const SPECIAL_USE = /(^|\.)(localhost|local|internal|onion|test|invalid|alt|home\.arpa)$/;

/** In its one ASCII form. Only under public top-level domains: it goes into requests. */
export function parseHostName(text: string): { name: string } | { fault: string } {
  if (text === '' || NOT_IN_NAMES.test(text))
    return { fault: 'a host name such as example.com, without scheme or path' };
  const name = domainToASCII(text.toLowerCase()).replace(/\.$/, '');
  if (name === '') return { fault: 'not a valid internationalised name' };
  if (name.length > MAX_NAME) return { fault: `longer than ${MAX_NAME} characters` };
  const labels = name.split('.');
  if (!labels.every((label) => LABEL.test(label)))
    return { fault: 'each label takes 1 to 63 letters, digits or hyphens' };
  if (NUMERIC.test(labels.at(-1) ?? '')) return { fault: 'a host name, not an IP address' };
  if (labels.length < 2) return { fault: 'a name with at least one dot' };
  if (SPECIAL_USE.test(name)) return { fault: 'a special-use name, which the public DNS does not hold' };
  return { name };
}

/** Of a raw request target, byte for byte, also of an absolute form. Null without a path. */
export function pathAndQuery(target: string): string | null {
  const start = target.startsWith('/') ? 0 : target.indexOf('/', target.indexOf('//') + 2);
  return start < 0 ? null : target.slice(start);
}

/** The registered part; null for `co.uk`. Only the Public Suffix List's ICANN section counts, not `github.io`. */
export function registrableDomain(hostName: string): string | null {
  return getDomain(hostName, { allowPrivateDomains: false });
}

/** The list lacks domains that are newer than the library. */
export function isListedTld(tld: string): boolean {
  return parse(`name.${tld}`, { allowPrivateDomains: false }).isIcann === true;
}

/** As answers may show it: an operator's mirror may need credentials. */
export function withoutCredentials(url: string): string {
  return url.replace(/^(https?:\/\/)[^/?#]*@/, '$1');
}
