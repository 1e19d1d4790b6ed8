import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import ipaddr from 'ipaddr.js';
import { isForwarded } from '../forwarded.ts';
import { clientKey } from './client-key.ts';

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
