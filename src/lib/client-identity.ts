import { randomUUID } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import ipaddr from 'ipaddr.js';
import { clientKey } from './client-key.ts';
import { isForwarded } from './forwarded.ts';

/** What is read of a request, under Fastify's names. */
interface Received {
  /** The peer's address, or the one that a trusted proxy saw. */
  readonly ip: string;
  /** With trusted proxies alone: the peer's address, and behind it those that trusted ones told. */
  readonly ips?: readonly string[] | undefined;
  readonly headers: IncomingHttpHeaders;
}

/**
 * What tells a client from all others where an address has to prove who asks, as on redelivery. It is the key under which the client is counted
 * where the address is the client's own. Where only a proxy's address is known, which strangers share, it is a value that no other request has,
 * not even the next one of the same client: then something else must prove it.
 */
export function identityOf(request: Received): string {
  return hasOwnAddress(request) ? clientKey(request.ip) : randomUUID();
}

/**
 * Whether a request came straight from its client, or through trusted proxies that told where it came from. A forwarding header from any other
 * peer proves nothing, since a client can write one too.
 */
export function hasOwnAddress({ ip, ips, headers }: Received): boolean {
  if (!ipaddr.isValid(ip)) return false;
  return (ips !== undefined && ips.length > 1) || !isForwarded(headers);
}
