import { isIP } from 'node:net';
import { BadParameter } from '../../errors.ts';
import { isPublicAddress } from './address-ranges.ts';

/** RFC 1035: a host name and its labels. */
const MAX_NAME = 253;
const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;

/**
 * Names with a meaning only inside a network (RFC 6761, RFC 8375, RFC 9476, ICANN's `internal`, and names that routers and firms use).
 * They would fail to resolve or resolve to closed addresses. They are refused early, so that our resolver is not asked about them.
 */
const PRIVATE_SUFFIXES = [
  ...['localhost', 'local', 'internal', 'intranet', 'private', 'corp', 'home', 'lan', 'home.arpa', 'localdomain'],
  ...['test', 'invalid', 'onion', 'alt', 'in-addr.arpa', 'ip6.arpa'],
];

/** Names under which clouds serve credentials to their virtual machines. They are refused, whatever they resolve to. */
const METADATA_HOSTS = new Set(['metadata.google.internal', 'metadata.goog', 'instance-data.ec2.internal']);

/** The error for a URL that is, redirects to or resolves to something that is not public. It gives the reason, but never the address. */
export function urlNotPublic(reason: string): BadParameter {
  return new BadParameter([{ path: 'url', message: reason }], 'url_not_public');
}

/** The host of a URL for resolution and limits: lower case, without brackets and without a trailing dot. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

/**
 * Checks a URL before its host is resolved. Throws `url_not_public` unless it is http(s) on the default port, without credentials, for a public
 * address or a name that may be public. It takes the parsed URL and not the text, because the parser turns every spelling of an address (octal, hex,
 * short, full-width) into the one that would be connected to.
 */
export function requirePublicUrl(url: URL, ownHosts: ReadonlySet<string> = NONE): void {
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw urlNotPublic('only http and https URLs');
  if (url.username !== '' || url.password !== '') throw urlNotPublic('a URL without user name and password');
  // The parser drops the scheme's default port.
  if (url.port !== '') throw urlNotPublic('only the default port');
  const host = hostOf(url);
  if (isIP(host) !== 0) {
    if (!isPublicAddress(host)) throw urlNotPublic(NOT_PUBLIC);
  } else if (!isPublicName(host) || ownHosts.has(host)) {
    throw urlNotPublic(NOT_PUBLIC);
  }
}

/** One text for a literal and for a name, so that it reveals nothing about our resolver's answers. */
const NOT_PUBLIC = 'only a host on the public internet';
const NONE: ReadonlySet<string> = new Set();

/** Throws `url_not_public` unless every address of a name is public. One closed address among them suggests an attack. */
export function requirePublicAddresses(addresses: readonly string[]): void {
  if (addresses.length === 0 || !addresses.every(isPublicAddress)) throw urlNotPublic(NOT_PUBLIC);
}

function isPublicName(host: string): boolean {
  if (host.length > MAX_NAME || METADATA_HOSTS.has(host)) return false;
  const labels = host.split('.');
  if (labels.length < 2 || !labels.every((label) => LABEL.test(label))) return false;
  return !PRIVATE_SUFFIXES.some((suffix) => host === suffix || host.endsWith(`.${suffix}`));
}
