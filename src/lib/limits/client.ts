import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
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

/** The used fields of a request, under Fastify's names. */
interface Received {
  /** The peer's address, or the one that a trusted proxy saw. */
  readonly ip: string;
  /** Only with trusted proxies: the peer's address, followed by the addresses that trusted proxies named. */
  readonly ips?: readonly string[] | undefined;
  readonly headers: IncomingHttpHeaders;
}

/**
 * The value that proves on redelivery that the same client asks. For a request with its client's own address it is the client key (`clientKey`).
 * For a request of which only a proxy's address is known it is a random value, because the proxy's clients share that address. Such a client must
 * present its payment identifier.
 */
export function identityOf(request: Received): string {
  return hasOwnAddress(request) ? clientKey(request.ip) : randomUUID();
}

/**
 * Whether a request came straight from its client, or through trusted proxies that named its address. A forwarding header from any other peer
 * proves nothing, because a client can write one too. A proxy that writes no such header counts as the client.
 */
export function hasOwnAddress({ ip, ips, headers }: Received): boolean {
  if (!ipaddr.isValid(ip)) return false;
  return (ips !== undefined && ips.length > 1) || !isForwarded(headers);
}

/**
 * Headers of RFC 7239, RFC 9110 and RFC 8586, nginx's usual one, and those in which hosts and proxies name the client:
 * Cloudflare, Akamai, Fly, Fastly, Envoy, Apache and load balancers. Every header that begins with `x-forwarded-`
 * counts too.
 */
const NAMES: ReadonlySet<string> = new Set([
  ...['forwarded', 'via', 'cdn-loop', 'x-real-ip', 'cf-connecting-ip', 'true-client-ip', 'fly-client-ip'],
  ...['fastly-client-ip', 'x-envoy-external-address', 'x-client-ip', 'x-cluster-client-ip'],
]);
const PREFIX = 'x-forwarded-';

/**
 * Whether a request has a header that proxies add and that clients have no reason to send. All usual ones count, because proxies add different ones.
 * A forwarded request without any of them is treated as the proxy's own request.
 */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  for (const name in headers) if (NAMES.has(name) || name.startsWith(PREFIX)) return true;
  return false;
}

/** Whether a peer's address is of this machine. False without an address, and for text that is none. */
export function isLoopback(address: string | undefined): boolean {
  return address !== undefined && ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';
}
