import { z } from 'zod';
import { secondsOf } from '../../lib/clock.ts';
import type { Dated, Upstream } from '../client/client.ts';

const count = z.int().nonnegative();
const countsSchema = z
  .object({ dependentCount: count, directDependentCount: count, indirectDependentCount: count })
  .transform(({ dependentCount: total, directDependentCount: direct, indirectDependentCount: indirect }) => {
    return { direct, indirect, total };
  });

/** How many public packages depend on one version, by deps.dev's count. */
export type Dependents = Dated<z.output<typeof countsSchema>>;

/** In deps.dev's alpha API alone (https://docs.deps.dev/api/v3alpha/#getdependents). 404 may mean no dependents. */
export function createDependents(upstream: Upstream, baseUrl: string) {
  /** Null: deps.dev knows none, or does not know the version yet. Rejects with UpstreamFailed without an answer. */
  return async (system: 'npm' | 'pypi', name: string, version: string, signal?: AbortSignal) => {
    const exact = `${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}`;
    const url = `${baseUrl}/v3alpha/systems/${system}/packages/${exact}:dependents`;
    return upstream.jsonDated({ url, signal }, countsSchema);
  };
}

const versionSchema = z.object({ publishedAt: z.string().optional() });

/** When an npm version was published; null when deps.dev fails or does not know. It lags: the second choice. */
export function createDepsDev(upstream: Upstream, baseUrl: string) {
  return async (name: string, version: string, signal?: AbortSignal): Promise<number | null> => {
    const path = `v3/systems/npm/packages/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}`;
    const found = await upstream.json({ url: `${baseUrl}/${path}`, signal }, versionSchema).catch(() => null);
    return secondsOf(found?.publishedAt);
  };
}
