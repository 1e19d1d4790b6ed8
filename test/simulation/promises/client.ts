/** The key under which a service may know a client: an IPv4 address, or the /64 of an IPv6 address as this simulation writes them. */
export function clientOf(address: string): string {
  return address.includes(':') ? address.split(':').slice(0, 4).join(':') : address;
}
