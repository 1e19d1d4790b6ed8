import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import ipaddr from 'ipaddr.js';

// Who is counted: a client (an IPv4 address or an IPv6 /64) and its site (the /48); and who is who on redelivery.

/** Text that is no address is cut to this length: a proxy may pass on any. */
const MAX_TEXT = 64;
const NETWORK_SUFFIX = '::/64';
/** RFC 4291, 2.5.5.2. The library's `isIPv4MappedAddress` compares with every special range, at each request. */
const IPV4_MAPPED = ipaddr.IPv6.parseCIDR('::ffff:0:0/96');

/** A site's limit, as a multiple of a client's: neighbours at one hoster can share a /48, and its owner is limited. */
export const CLIENTS_PER_SITE = 4;

/** A client's key: its IPv4 address, or its IPv6 /64, which one household or server gets. `::ffff:` is IPv4. */
export function clientKey(ip: string): string {
  if (!ip.includes(':')) return ip.slice(0, MAX_TEXT);
  if (!ipaddr.IPv6.isValid(ip)) return ip.slice(0, MAX_TEXT).toLowerCase();
  const address = ipaddr.IPv6.parse(ip);
  if (address.match(IPV4_MAPPED)) return address.toIPv4Address().toString();
  const network = address.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(':')}${NETWORK_SUFFIX}`;
}

/** The /48 around a client's /64 (RFC 6177), else null. Without a limit of its own, one host is 65,536 clients. */
export function siteKey(client: string): string | null {
  if (!client.endsWith(NETWORK_SUFFIX)) return null;
  return `${client.slice(0, -NETWORK_SUFFIX.length).split(':').slice(0, 3).join(':')}::/48`;
}

/** A client's own key, and its site's for IPv6. */
export function keysOf(client: string): readonly string[] {
  const site = siteKey(client);
  return site === null ? [client] : [client, site];
}

interface Received {
  /** The peer's address, or the one that a trusted proxy saw. */
  readonly ip: string;
  /** Only with trusted proxies: the peer's address, then those that trusted proxies named. */
  readonly ips?: readonly string[] | undefined;
  readonly headers: IncomingHttpHeaders;
}

/** Proves on redelivery that the same client asks. A proxy's clients share its address: each gets a random one. */
export function identityOf(request: Received): string {
  return hasOwnAddress(request) ? clientKey(request.ip) : randomUUID();
}

/** Whether it came straight or through trusted proxies. Another peer's header proves nothing: clients write them. */
export function hasOwnAddress({ ip, ips, headers }: Received): boolean {
  if (!ipaddr.isValid(ip)) return false;
  return (ips !== undefined && ips.length > 1) || !isForwarded(headers);
}

/** RFC 7239, 9110, 8586, nginx, Cloudflare, Akamai, Fly, Fastly, Envoy, Apache and load balancers name clients so. */
const NAMES: ReadonlySet<string> = new Set([
  ...['forwarded', 'via', 'cdn-loop', 'x-real-ip', 'cf-connecting-ip', 'true-client-ip', 'fly-client-ip'],
  ...['fastly-client-ip', 'x-envoy-external-address', 'x-client-ip', 'x-cluster-client-ip'],
]);
const PREFIX = 'x-forwarded-';

/** Whether it has a header that proxies add. All usual ones count; a proxy that adds none passes for the client. */
export function isForwarded(headers: IncomingHttpHeaders): boolean {
  for (const name in headers) if (NAMES.has(name) || name.startsWith(PREFIX)) return true;
  return false;
}

/** Whether an address is of this machine. False without one, and for text that is none. */
export function isLoopback(address: string | undefined): boolean {
  return address !== undefined && ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';
}
