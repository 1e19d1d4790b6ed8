import ipaddr from 'ipaddr.js';

/** Whether a peer's address is of this machine. False without an address, and for text that is none. */
export function isLoopback(address: string | undefined): boolean {
  return address !== undefined && ipaddr.isValid(address) && ipaddr.process(address).range() === 'loopback';
}
