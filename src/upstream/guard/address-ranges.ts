import { BlockList, isIP } from 'node:net';

/**
 * IPv4 that no stranger may make us talk to: every row of IANA's special-purpose registry
 * (https://www.iana.org/assignments/iana-ipv4-special-registry), "globally reachable" ones included, since no web page lives there;
 * multicast; and the one public-looking address that clouds serve to their guests.
 */
const CLOSED_V4 = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  // Multicast (RFC 5771), then what is reserved with the broadcast address.
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Azure's platform services answer every guest here (https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
  '168.63.129.16/32',
];

/** All global unicast IPv6 there is (RFC 4291; IANA allocates from nothing else): the rest, mapped, NAT64 and ULA included, is closed by not being here. */
const OPEN_V6 = '2000::/3';

/** What of it IANA's registry sets apart (https://www.iana.org/assignments/iana-ipv6-special-registry). Teredo and 6to4 carry IPv4 addresses: closed whole. */
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

/** Whether an address is one that the public internet routes to a host. Anything that is no plain IP address, a zone id included, is not. */
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
