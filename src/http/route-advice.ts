import type { Endpoint } from '../catalogue/endpoint.ts';
import { entriesOn, type Mount, PREFIX, pathOn, servedPaths, surfacesOf } from '../catalogue/paths.ts';
import { nearest } from '../lib/edit-distance.ts';
import { pathAndQuery } from '../lib/url.ts';
import { pathOf } from './problems.ts';

/** A longer path is no typing error of one that is served. */
const MAX_PATH = 100;
/** From the longest prefix to the shortest, because `/v1` begins all of them. */
const MOUNTS = ['lightning', 'paid', 'mpp', 'free'] as const satisfies readonly Mount[];

export const NO_SUCH_ROUTE =
  'There is no such route; /openapi.json lists those that are, and /v1/paid lists those that are sold.';
/** It is not suggested: without its token it answers as if it were not there. */
const HIDDEN = '/metrics';

interface AdviceOptions {
  readonly catalogue: readonly Endpoint<never>[];
  readonly chainSegment: string;
  readonly isMppOn: boolean;
  /** The patterns of every mounted route, by the time of the first request. */
  readonly routes: readonly { readonly url: string }[];
}

/** What a 404 says: how the path is spelt, its right prefix, the nearest served path, or where routes are listed. */
export function createRouteAdvice(options: AdviceOptions): (target: string) => string {
  const { chainSegment, routes } = options;
  let served: ReadonlySet<string> | undefined;

  return (target) => {
    const path = pathOf(pathAndQuery(target) ?? target);
    if (path.length > MAX_PATH) return NO_SUCH_ROUTE;
    served ??= new Set(
      routes.map(({ url }) => url).filter((url) => !/[:*]/.test(url) && url !== HIDDEN && !isOff(url, options)),
    );
    const tidy = tidied(path);
    if (tidy !== path && served.has(tidy)) return `There is no such route: ${misspelt(path)}. Ask for ${tidy}.`;
    const listed = tidy.replace(`/${chainSegment}/`, '/chain/');
    const elsewhere = otherMounts(listed, options);
    if (elsewhere !== null) return elsewhere;
    const near = nearTo(listed, served);
    return near === null ? NO_SUCH_ROUTE : `There is no such route; did you mean ${near}?`;
  };
}

/** Whether a path is mounted for payments from before alone (ROUTES_OFF). */
function isOff(url: string, { catalogue, chainSegment }: AdviceOptions): boolean {
  const mount = MOUNTS.find((one) => url.startsWith(`${PREFIX[one]}/`));
  if (mount === undefined || mount === 'free') return false;
  const surface = mount === 'mpp' ? 'paid' : mount;
  return !entriesOn(catalogue, surface).some((entry) => servedPaths(entry, mount, chainSegment).includes(url));
}

/** In lower case, with single slashes, and without one at the end. */
function tidied(path: string): string {
  return path
    .toLowerCase()
    .replace(/\/{2,}/g, '/')
    .replace(/(.)\/$/, '$1');
}

function misspelt(path: string): string {
  const faults = [
    ...(/\/{2,}/.test(path) ? ['has no doubled slash'] : []),
    ...(/.\/$/.test(path) ? ['has no slash at its end'] : []),
    ...(path === path.toLowerCase() ? [] : ['is in lower case']),
  ];
  return `its path ${faults.join(' and ')}`;
}

/** Says where a route is served that was asked for under another prefix. Null when no prefix has it. */
function otherMounts(path: string, { catalogue, isMppOn }: AdviceOptions): string | null {
  const asked = MOUNTS.find((mount) => path.startsWith(`${PREFIX[mount]}/`));
  if (asked === undefined) return null;
  const below = path.slice(PREFIX[asked].length);
  const entries = catalogue.filter((endpoint) => endpoint.path === below);
  const mounts = entries.flatMap((endpoint) => surfacesOf(endpoint).map((mount) => ({ mount, endpoint })));
  const at = (mount: Mount) =>
    mounts.filter((one) => one.mount === mount).map(({ endpoint }) => pathOn(endpoint, mount))[0];
  const [free, paid, lightning] = [at('free'), at('paid'), at('lightning')];
  const off = asked === 'mpp' && !isMppOn ? 'MPP is off here. ' : '';
  if (paid && lightning) return `${off}This route is sold: ${paid} in USDC, ${lightning} in bitcoin.`;
  if (paid) return `${off}This route is sold in USDC only: ${paid}.`;
  if (lightning) return `${off}This route is sold in bitcoin only: ${lightning}.`;
  return free ? `This route is free: ${free}.` : null;
}

const MOST_EDITS = 2;
/** The path below `/v1`, else the served path that is the fewest edits away, or null. */
function nearTo(path: string, served: ReadonlySet<string>): string | null {
  if (served.has(`/v1${path}`)) return `/v1${path}`;
  return nearest(path, served, MOST_EDITS)?.name ?? null;
}
