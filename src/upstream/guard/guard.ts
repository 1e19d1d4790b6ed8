import { Resolver } from 'node:dns/promises';
import { BlockList, isIP } from 'node:net';
import { BadParameter, NotFound } from '../../errors.ts';
import { orAborted } from '../../lib/tasks.ts';
import { ExchangeFailed } from '../client/failure.ts';

// Which URLs of third parties may be requested: the form of the URL, the public addresses, and the resolution of names.

/** One text for a literal and for a name, so that it reveals nothing about our resolver's answers. */
const NOT_PUBLIC = 'only a host on the public internet';
const NONE: ReadonlySet<string> = new Set();

/** Throws `url_not_public` unless a URL is http(s), on the default port, without credentials, and for a public host. */
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

/** Throws `url_not_public` unless all of a name's addresses are public. One closed among them suggests an attack. */
export function requirePublicAddresses(addresses: readonly string[]): void {
  if (addresses.length === 0 || !addresses.every(isPublicAddress)) throw urlNotPublic(NOT_PUBLIC);
}

/** The error for a URL that is, redirects to or resolves to something not public. It gives the reason, no address. */
function urlNotPublic(reason: string): BadParameter {
  return new BadParameter([{ path: 'url', message: reason }], 'url_not_public');
}

/** The host of a URL for resolution and limits: lower case, without brackets and without a trailing dot. */
export function hostOf(url: URL): string {
  return url.hostname.replace(/^\[|\]$/g, '').replace(/\.$/, '');
}

/** RFC 1035. */
const MAX_NAME = 253;
const LABEL = /^(?!-)[a-z0-9_-]{1,63}(?<!-)$/;

/** Known inside networks only (RFC 6761, 8375, 9476, ICANN's `internal`, routers'). Our resolver is not asked them. */
const PRIVATE_SUFFIXES = [
  ...['localhost', 'local', 'internal', 'intranet', 'private', 'corp', 'home', 'lan', 'home.arpa', 'localdomain'],
  ...['test', 'invalid', 'onion', 'alt', 'in-addr.arpa', 'ip6.arpa'],
];

/** Where clouds serve credentials to their virtual machines: refused, whatever they resolve to. */
const METADATA_HOSTS = new Set(['metadata.google.internal', 'metadata.goog', 'instance-data.ec2.internal']);

function isPublicName(host: string): boolean {
  if (host.length > MAX_NAME || METADATA_HOSTS.has(host)) return false;
  const labels = host.split('.');
  if (labels.length < 2 || !labels.every((label) => LABEL.test(label))) return false;
  return !PRIVATE_SUFFIXES.some((suffix) => host === suffix || host.endsWith(`.${suffix}`));
}

/** All of https://www.iana.org/assignments/iana-ipv4-special-registry, multicast, and Azure's, which looks public. */
const CLOSED_V4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.31.196.0/24', '192.52.193.0/24', '192.88.99.0/24', '192.168.0.0/16'],
  ...['192.175.48.0/24', '198.18.0.0/15', '198.51.100.0/24', '203.0.113.0/24'],
  // Multicast (RFC 5771), then the reserved range with the broadcast address.
  ...['224.0.0.0/4', '240.0.0.0/4'],
  // https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16
  '168.63.129.16/32',
];

/** All global unicast IPv6 (RFC 4291; IANA allocates from here only). All else is closed: mapped, NAT64, ULA too. */
const OPEN_V6 = '2000::/3';

/** https://www.iana.org/assignments/iana-ipv6-special-registry. Teredo and 6to4 contain IPv4 addresses: closed. */
const CLOSED_V6 = [
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
  // The old 6bone (RFC 3701): given back, never allocated again.
  '3ffe::/16',
];

const closedV4 = blockListOf(CLOSED_V4, 'ipv4');
const openV6 = blockListOf([OPEN_V6], 'ipv6');
const closedV6 = blockListOf(CLOSED_V6, 'ipv6');

/** Whether the public internet routes an address to a host. False for all but a plain IP address without a zone. */
export function isPublicAddress(address: string): boolean {
  if (address.includes('%')) return false;
  switch (isIP(address)) {
    case 4:
      return !closedV4.check(address, 'ipv4');
    case 6:
      return openV6.check(address, 'ipv6') && !closedV6.check(address, 'ipv6');
    default:
      return false;
  }
}

function blockListOf(ranges: readonly string[], family: 'ipv4' | 'ipv6'): BlockList {
  const list = new BlockList();
  for (const range of ranges) {
    const [network = '', prefix] = range.split('/');
    list.addSubnet(network, Number(prefix), family);
  }
  return list;
}

/** Time-out of each of the two tries, 1.5 s. Both fit into the time-out for connecting. */
const QUERY_MS = 1500;
const TRIES = 2;
/** Time-out of the one question for the root, which is asked after the name was answered. */
const ROOT_MS = 1000;

/** Resolves a host name to all its addresses, IPv4 first, because not every machine can reach IPv6. */
export type Resolve = (host: string, signal: AbortSignal) => Promise<string[]>;

/** Asks name servers directly: with `getaddrinfo` a silent one could stall the four threads that Node has for files. */
export function createResolve(servers?: readonly string[]): Resolve {
  const resolver = new Resolver({ timeout: QUERY_MS, tries: TRIES });
  const ofRoot = new Resolver({ timeout: ROOT_MS, tries: 1 });
  if (servers) for (const one of [resolver, ofRoot]) one.setServers(servers);
  return async (host, signal) => {
    const both = Promise.allSettled([resolver.resolve4(host), resolver.resolve6(host)]);
    const [v4, v6] = await orAborted(both, signal);
    const found = [v4, v6].flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    if (found.length > 0) return found;
    const isGone = [v4, v6].every((result) => result.status === 'rejected' && isAbsent(result.reason));
    if (isGone && !(await orAborted(lacksTheRoot(ofRoot), signal))) {
      throw new NotFound(`the host ${host} does not exist`, 'host_not_found');
    }
    // The machine's resolver gives the same error whether it is at fault itself or the name's own servers are.
    throw new ExchangeFailed('connecting', 'its name cannot be resolved now', undefined, { mayBeOurs: true });
  };
}

/** Whether the servers know no name at all. Without a network one may deny every name, but never the root. */
async function lacksTheRoot(resolver: Resolver): Promise<boolean> {
  return resolver.resolveNs('.').then(() => false, isAbsent);
}

/** No such name, or no address of that kind. Both are answers and no failures. */
function isAbsent(error: unknown): boolean {
  const code = error instanceof Error && 'code' in error ? error.code : '';
  return code === 'ENOTFOUND' || code === 'ENODATA';
}
