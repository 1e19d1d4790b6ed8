import type { Endpoint } from './endpoint.ts';

/** The path prefix of each mount: free, paid in USDC, paid in bitcoin over Lightning, paid in USDC by MPP. */
export const PREFIX = { free: '/v1', paid: '/v1/paid', lightning: '/v1/lightning', mpp: '/v1/mpp' } as const;

/** A group of routes under one prefix. */
export type Mount = keyof typeof PREFIX;

/** A group of routes: the free ones, those paid in USDC, those paid over Lightning. */
export type Surface = Exclude<Mount, 'mpp'>;

type Placed = Pick<Endpoint<never>, 'access' | 'path' | 'onlyOn'>;

/** The surfaces of an entry. A free entry has one. A priced entry is sold on both rails, unless it is declared for one. */
export function surfacesOf({ access, onlyOn }: Placed): readonly Surface[] {
  if (access === 'free') return ['free'];
  return onlyOn === undefined ? ['paid', 'lightning'] : [onlyOn];
}

/** The entries of one surface, in the catalogue's order. */
export function entriesOn<E extends Placed>(catalogue: readonly E[], surface: Surface): E[] {
  return catalogue.filter((endpoint) => surfacesOf(endpoint).includes(surface));
}

/** The one public path of an entry on a surface. */
export function pathOn(endpoint: Placed, surface: Mount): string {
  return `${PREFIX[surface]}${endpoint.path}`;
}

/** The path under which documents list an entry first: the USDC route if the entry is sold on both rails. */
export function listedPath(endpoint: Placed): string {
  return pathOn(endpoint, surfacesOf(endpoint)[0] ?? 'free');
}

/** Every path under which an entry is served on a surface: the listed path, and the same path with the network's own segment instead of `chain`. */
export function servedPaths(endpoint: Placed, surface: Mount, chainSegment: string): string[] {
  const listed = pathOn(endpoint, surface);
  if (!endpoint.path.startsWith('/chain/') || chainSegment === 'chain') return [listed];
  return [listed, `${PREFIX[surface]}/${chainSegment}${endpoint.path.slice('/chain'.length)}`];
}

/** A route's name in OpenAPI: `/fees/estimate`, paid, is `paidFeesEstimate`. Generated clients and links rely on it. */
export function operationIdOf(path: string, mount: Mount): string {
  return mount + pascal(path);
}

/** Where the reference shows a route, opened and filled in with its example. `path` is the one below the prefix. */
export function referenceLink(path: string, mount: Mount): string {
  return `/docs#${operationIdOf(path, mount)}`;
}

/** `/fees/estimate` is `FeesEstimate`. */
export function pascal(path: string): string {
  const words = path.split(/[^a-zA-Z0-9]+/).filter((word) => word !== '');
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}
