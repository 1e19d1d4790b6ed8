import { z } from 'zod';
import { secondsOf } from '../../lib/clock.ts';
import type { Upstream } from '../client/http.ts';

const versionSchema = z.object({ publishedAt: z.string().optional() });

/** When an npm version was published, from deps.dev. Null when deps.dev does not know it or fails. It is the second choice, because it lags the registry. */
export function createDepsDev(upstream: Upstream, baseUrl: string) {
  return async (name: string, version: string, signal?: AbortSignal): Promise<number | null> => {
    const path = `v3/systems/npm/packages/${encodeURIComponent(name)}/versions/${encodeURIComponent(version)}`;
    const found = await upstream
      .json({ url: `${baseUrl}/${path}`, ...(signal && { signal }) }, versionSchema)
      .catch(() => null);
    return secondsOf(found?.publishedAt);
  };
}
