import type { Endpoint } from './endpoint.ts';

/** Free, paid in USDC, paid in bitcoin over Lightning, and paid in USDC by MPP. */
export const PREFIX = { free: '/v1', paid: '/v1/paid', lightning: '/v1/lightning', mpp: '/v1/mpp' } as const;

/** RFC 9727: where the documents of all APIs are listed, and the header field that leads there from elsewhere. */
export const API_CATALOG = '/.well-known/api-catalog';
export const API_CATALOG_LINK = `<${API_CATALOG}>; rel="api-catalog"`;

export type Mount = keyof typeof PREFIX;

export type Surface = Exclude<Mount, 'mpp'>;

type Placed = Pick<Endpoint<never>, 'access' | 'path' | 'onlyOn'>;

/** A free entry has one surface. A priced one is sold on both rails, unless it is declared for one. */
export function surfacesOf({ access, onlyOn }: Placed): readonly Surface[] {
  if (access === 'free') return ['free'];
  return onlyOn === undefined ? ['paid', 'lightning'] : [onlyOn];
}

export function entriesOn<E extends Placed>(catalogue: readonly E[], surface: Surface): E[] {
  return catalogue.filter((endpoint) => surfacesOf(endpoint).includes(surface));
}

export function pathOn(endpoint: Placed, surface: Mount): string {
  return `${PREFIX[surface]}${endpoint.path}`;
}

/** The path that documents list first: the USDC route of an entry that is sold on both rails. */
export function listedPath(endpoint: Placed): string {
  return pathOn(endpoint, surfacesOf(endpoint)[0] ?? 'free');
}

/** A `chain` route has also a path with the network's own segment in place of `chain`. */
export function servedPaths(endpoint: Placed, surface: Mount, chainSegment: string): string[] {
  const listed = pathOn(endpoint, surface);
  if (!endpoint.path.startsWith('/chain/') || chainSegment === 'chain') return [listed];
  return [listed, `${PREFIX[surface]}/${chainSegment}${endpoint.path.slice('/chain'.length)}`];
}

/** A route's name in OpenAPI: `/fees/estimate`, paid, is `paidFeesEstimate`. Generated clients and links rely on it. */
export function operationIdOf(path: string, mount: Mount): string {
  return mount + pascal(path);
}

/** Where the reference shows a route, filled in with its example. `path` is the one below the prefix. */
export function referenceLink(path: string, mount: Mount): string {
  return `/docs#${operationIdOf(path, mount)}`;
}

/** `/fees/estimate` is `FeesEstimate`. */
export function pascal(path: string): string {
  const words = path.split(/[^a-zA-Z0-9]+/).filter((word) => word !== '');
  return words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}
