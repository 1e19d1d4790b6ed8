import { BlockList, isIP } from 'node:net';

/**
 * IPv4 ranges to which a third party's URL must not lead: every row of IANA's special-purpose registry
 * (https://www.iana.org/assignments/iana-ipv4-special-registry), "globally reachable" ones included, because they hold no web pages;
 * multicast; and Azure's platform address, which looks public.
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
  // Multicast (RFC 5771), then the reserved range with the broadcast address.
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Azure's platform services answer every virtual machine here (https://learn.microsoft.com/azure/virtual-network/what-is-ip-address-168-63-129-16).
  '168.63.129.16/32',
];

/** All global unicast IPv6 (RFC 4291; IANA allocates from this range only). Everything else is closed, mapped, NAT64 and ULA included. */
const OPEN_V6 = '2000::/3';

/**
 * Special ranges inside it, from IANA's registry (https://www.iana.org/assignments/iana-ipv6-special-registry).
 * Teredo and 6to4 contain IPv4 addresses, so they are closed.
 */
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

/** Whether the public internet routes an address to a host. False for anything but a plain IP address, and for one with a zone id. */
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
