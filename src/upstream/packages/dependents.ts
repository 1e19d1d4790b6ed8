import { z } from 'zod';
import { secondsOf } from '../../lib/clock.ts';
import type { Upstream } from '../client/client.ts';

/** How many public packages depend on one version, by deps.dev's count. */
export interface Dependents {
  readonly direct: number;
  readonly indirect: number;
  readonly total: number;
  readonly url: string;
  readonly retrievedAtMs: number;
}

/** Null: deps.dev knows none, or does not know the version yet. Rejects with UpstreamFailed when it does not answer. */
export type FindDependents = (
  system: 'npm' | 'pypi',
  name: string,
  version: string,
  signal?: AbortSignal,
) => Promise<Dependents | null>;

const count = z.int().nonnegative();
const countsSchema = z.object({
  dependentCount: count,
  directDependentCount: count,
  indirectDependentCount: count,
});

/** In deps.dev's alpha API alone (https://docs.deps.dev/api/v3alpha/#getdependents). 404 may mean no dependents. */
export function createDependents(upstream: Upstream, baseUrl: string): FindDependents {
  return async (system, name, version, signal) => {
    const exact = `${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}`;
    const url = `${baseUrl}/v3alpha/systems/${system}/packages/${exact}:dependents`;
    const got = await upstream.jsonDated({ url, ...(signal && { signal }) }, countsSchema);
    if (got === null) return null;
    const { dependentCount: total, directDependentCount: direct, indirectDependentCount: indirect } = got.data;
    return { direct, indirect, total, url: got.url, retrievedAtMs: got.retrievedAtMs };
  };
}

const versionSchema = z.object({ publishedAt: z.string().optional() });

/** When an npm version was published; null when deps.dev fails or does not know. It lags: the second choice. */
export function createDepsDev(upstream: Upstream, baseUrl: string) {
  return async (name: string, version: string, signal?: AbortSignal): Promise<number | null> => {
    const path = `v3/systems/npm/packages/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}`;
    const found = await upstream
      .json({ url: `${baseUrl}/${path}`, ...(signal && { signal }) }, versionSchema)
      .catch(() => null);
    return secondsOf(found?.publishedAt);
  };
}
