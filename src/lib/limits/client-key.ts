import ipaddr from 'ipaddr.js';

/** The length to which a client's text is cut when it is no address. A proxy may pass on any text. */
const MAX_TEXT = 64;
const NETWORK_SUFFIX = '::/64';
/** RFC 4291, 2.5.5.2. The library's `isIPv4MappedAddress` compares with every special range, at each request. */
const IPV4_MAPPED = ipaddr.IPv6.parseCIDR('::ffff:0:0/96');

/**
 * The limit of a site (an IPv6 /48), as a multiple of a client's limit. All limits use this factor.
 * With 4, independent neighbours such as customers of one hosting provider can share a /48, and a host that owns all 65,536 networks of its /48 is
 * limited.
 */
export const CLIENTS_PER_SITE = 4;

/**
 * The key under which a client is counted: its IPv4 address, or the /64 of its IPv6 address.
 * A /64 is what one household or server gets, so that rotating inside it does not make a new client; `::ffff:` addresses are IPv4.
 */
export function clientKey(ip: string): string {
  if (!ip.includes(':')) return ip.slice(0, MAX_TEXT);
  if (!ipaddr.IPv6.isValid(ip)) return ip.slice(0, MAX_TEXT).toLowerCase();
  const address = ipaddr.IPv6.parse(ip);
  if (address.match(IPV4_MAPPED)) return address.toIPv4Address().toString();
  const network = address.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(':')}${NETWORK_SUFFIX}`;
}

/**
 * The /48 that a client's /64 lies in, as a second key; null for a client that is no IPv6 network.
 * A /48 is what one site gets from its provider (RFC 6177), and holds 65,536 networks: without a limit of its own one host is that many clients.
 */
export function siteKey(client: string): string | null {
  if (!client.endsWith(NETWORK_SUFFIX)) return null;
  return `${client.slice(0, -NETWORK_SUFFIX.length).split(':').slice(0, 3).join(':')}::/48`;
}

/** Every key under which a client is counted: its own, and its site's for IPv6. */
export function keysOf(client: string): readonly string[] {
  const site = siteKey(client);
  return site === null ? [client] : [client, site];
}
