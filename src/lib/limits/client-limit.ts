import { CLIENTS_PER_SITE, siteKey } from './client-key.ts';
import type { Counted, MinuteWindows, SharedWindows } from './minute-windows.ts';

/**
 * Two sets of windows, one by client and one by site. Each set is bounded and forgets its oldest window. In a shared set, many clients of one site
 * would evict the site's window.
 */
export interface ClientWindows<W> {
  readonly clients: W;
  readonly sites: W;
}

/** A client's state after a call, for the limit that it reaches first: its own or its site's. */
export interface Standing {
  readonly of: 'client' | 'site';
  readonly limit: number;
  /** How many more calls fit into the limit; below 0 when this one did not. */
  readonly left: number;
  /** When the count begins anew, in whole seconds. */
  readonly resetSeconds: number;
}

/** Opens both windows of a name. */
export function openClientWindows<W>(open: (name: string) => W, name: string): ClientWindows<W> {
  return { clients: open(name), sites: open(`${name} of sites`) };
}

/** Counts a call for a client and for its site. A client over its own limit is not counted for its site, so that its neighbours lose nothing. */
export function countClient(perClient: number, windows: ClientWindows<MinuteWindows>, client: string): Standing {
  const own = standing('client', perClient, windows.clients.count(client));
  const site = own.left < 0 ? null : siteKey(client);
  return site === null ? own : nearer(own, standing('site', perClient * CLIENTS_PER_SITE, windows.sites.count(site)));
}

/** Like `countClient`, for windows that may be on another machine. Rejects when that machine does not answer. */
export async function countSharedClient(
  perClient: number,
  windows: ClientWindows<SharedWindows>,
  client: string,
): Promise<Standing> {
  const own = standing('client', perClient, await windows.clients.count(client));
  const site = own.left < 0 ? null : siteKey(client);
  if (site === null) return own;
  return nearer(own, standing('site', perClient * CLIENTS_PER_SITE, await windows.sites.count(site)));
}

function standing(of: Standing['of'], limit: number, { count, resetSeconds }: Counted): Standing {
  return { of, limit, left: limit - count, resetSeconds };
}

/** The limit with fewer calls left; of two equal ones, the one that lasts longer. */
function nearer(own: Standing, site: Standing): Standing {
  const isAlike = site.left === own.left;
  return site.left < own.left || (isAlike && site.resetSeconds > own.resetSeconds) ? site : own;
}
