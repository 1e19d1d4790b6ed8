import ipaddr from 'ipaddr.js';

/** What is no address (a proxy may pass on anything) is kept as text, bounded. */
const MAX_TEXT = 64;

/**
 * The key under which a client is counted: its IPv4 address, or the /64 of its IPv6 address.
 * A /64 is what one household or server gets, so that rotating inside it does not make a new client; `::ffff:` addresses are IPv4.
 */
export function clientKey(ip: string): string {
  if (!ip.includes(':')) return ip.slice(0, MAX_TEXT);
  if (!ipaddr.IPv6.isValid(ip)) return ip.slice(0, MAX_TEXT).toLowerCase();
  const address = ipaddr.IPv6.parse(ip);
  if (address.isIPv4MappedAddress()) return address.toIPv4Address().toString();
  const network = address.parts.slice(0, 4).map((part) => part.toString(16));
  return `${network.join(':')}::/64`;
}
