import type { Endpoint } from './endpoint.ts';

/** The prefixes under which catalogue entries are served. */
export const PREFIX = { free: '/v1', paid: '/v1/paid' } as const;

/** The path under which an endpoint is listed: its one public spelling. */
export function listedPath(endpoint: Pick<Endpoint<never>, 'access' | 'path'>): string {
  return `${PREFIX[endpoint.access]}${endpoint.path}`;
}

/** Every spelling that is served: the listed one, and the network's own segment in place of `chain`. */
export function servedPaths(endpoint: Pick<Endpoint<never>, 'access' | 'path'>, chainSegment: string): string[] {
  const listed = listedPath(endpoint);
  if (!endpoint.path.startsWith('/chain/') || chainSegment === 'chain') return [listed];
  return [listed, `${PREFIX[endpoint.access]}/${chainSegment}${endpoint.path.slice('/chain'.length)}`];
}
