import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import ipaddr from 'ipaddr.js';

// Who is counted: a client, which is an IPv4 address or an IPv6 /64, and its site, the /48 that contains the /64.
// Who is who on redelivery: a request's identity is its client, unless a proxy hides it.

/** Text that is no address is cut to this length: a proxy may pass on any. */
const MAX_TEXT = 64;
const NETWORK_SUFFIX = '::/64';
/** RFC 4291, 2.5.5.2. The library's `isIPv4MappedAddress` compares with every special range, at each request. */
const IPV4_MAPPED = ipaddr.IPv6.parseCIDR('::ffff:0:0/96');

/**
 * A site's limit as a multiple of a client's, in all limits. With 4, independent neighbours such as customers of one
 * hosting provider can share a /48, and a host that owns all 65,536 networks of its /48 is limited.
 */
export const CLIENTS_PER_SITE = 4;

/**
 * A client's key: its IPv4 address, or the /64 of its IPv6 address. A /64 is what one household or server gets, so that
 * rotating inside it makes no new client. `::ffff:` addresses are IPv4.
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
 * A second key, the /48 around a client's /64; null for a client that is no IPv6 network.
 * A site gets a /48 from its provider (RFC 6177): without a limit of its own, one host is 65,536 clients.
 */
export function siteKey(client: string): string | null {
  if (!client.endsWith(NETWORK_SUFFIX)) return null;
  return `${client.slice(0, -NETWORK_SUFFIX.length).split(':').slice(0, 3).join(':')}::/48`;
}

/** A client's own key, and its site's for IPv6. */
export function keysOf(client: string): readonly string[] {
  const site = siteKey(client);
  return site === null ? [client] : [client, site];
}

/** What is used of a request, by Fastify's names. */
interface Received {
  /** The peer's address, or the one that a trusted proxy saw. */
  readonly ip: string;
  /** Only with trusted proxies: the peer's address, then those that trusted proxies named. */
  readonly ips?: readonly string[] | undefined;
  readonly headers: IncomingHttpHeaders;
}

/**
 * What proves on redelivery that the same client asks: its client key, where its own address is known. Clients of a
 * proxy share its address, so each request gets a random value, and its client must present its payment identifier.
 */
export function identityOf(request: Received): string {
  return hasOwnAddress(request) ? clientKey(request.ip) : randomUUID();
}

/**
 * Whether a request came straight from its client, or through trusted proxies that named it. A forwarding header of any
 * other peer proves nothing, because a client can write one. A proxy that writes none counts as the client.
 */
export function hasOwnAddress({ ip, ips, headers }: Received): boolean {
  if (!ipaddr.isValid(ip)) return false;
  return (ips !== undefined && ips.length > 1) || !isForwarded(headers);
}

/**
 * Headers of RFC 7239, RFC 9110 and RFC 8586, nginx's usual one, and those in which Cloudflare, Akamai, Fly, Fastly,
 * Envoy, Apache and load balancers name the client.
 */
const NAMES: ReadonlySet<string> = new Set([
  ...['forwarded', 'via', 'cdn-loop', 'x-real-ip', 'cf-connecting-ip', 'true-client-ip', 'fly-client-ip'],
  ...['fastly-client-ip', 'x-envoy-external-address', 'x-client-ip', 'x-cluster-client-ip'],
]);
const PREFIX = 'x-forwarded-';

/**
 * Whether a request has a header that proxies add and clients do not need. All usual ones count, because proxies add
 * different ones. Without any of them, a forwarded request passes for the proxy's own.
 */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  for (const name in headers) if (NAMES.has(name) || name.startsWith(PREFIX)) return true;
  return false;
}

/** Whether an address is of this machine. False without one, and for text that is none. */
export function isLoopback(address: string | undefined): boolean {
  return address !== undefined && ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';
}
