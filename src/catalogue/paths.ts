import type { Endpoint } from './endpoint.ts';

/** The prefixes under which catalogue entries are served: for nothing, for USDC, for bitcoin. */
export const PREFIX = { free: '/v1', paid: '/v1/paid', lightning: '/v1/lightning' } as const;

/** Where a catalogue entry is served: the free routes, those paid in USDC, those paid over Lightning. */
export type Surface = keyof typeof PREFIX;

type Placed = Pick<Endpoint<never>, 'access' | 'path' | 'onlyOn'>;

/** The surfaces of an entry: free ones have one, priced ones are sold on both rails unless declared for one alone. */
export function surfacesOf({ access, onlyOn }: Placed): readonly Surface[] {
  if (access === 'free') return ['free'];
  return onlyOn === undefined ? ['paid', 'lightning'] : [onlyOn];
}

/** The entries of one surface, in the catalogue's order. */
export function entriesOn<E extends Placed>(catalogue: readonly E[], surface: Surface): E[] {
  return catalogue.filter((endpoint) => surfacesOf(endpoint).includes(surface));
}

/** The path under which an entry is listed on a surface: its one public spelling there. */
export function pathOn(endpoint: Placed, surface: Surface): string {
  return `${PREFIX[surface]}${endpoint.path}`;
}

/** The path under which an entry is listed first: the USDC route of what is sold on both rails. */
export function listedPath(endpoint: Placed): string {
  return pathOn(endpoint, surfacesOf(endpoint)[0] ?? 'free');
}

/** Every spelling that is served on a surface: the listed one, and the network's own segment in place of `chain`. */
export function servedPaths(endpoint: Placed, surface: Surface, chainSegment: string): string[] {
  const listed = pathOn(endpoint, surface);
  if (!endpoint.path.startsWith('/chain/') || chainSegment === 'chain') return [listed];
  return [listed, `${PREFIX[surface]}/${chainSegment}${endpoint.path.slice('/chain'.length)}`];
}
