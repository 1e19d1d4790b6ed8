import type { Wire } from './wire.ts';

/** The network of the seed that runs now: what the replaced `undici` and `fetch` send over. */
let wire: Wire | null = null;

export function useWire(given: Wire | null): void {
  wire = given;
}

export function currentWire(): Wire {
  if (!wire) throw new Error('a request left the service while no simulated world was there');
  return wire;
}
