import { z } from 'zod';
import type { Upstream } from '../client/http.ts';

const pointSchema = z.object({ downloads: z.int().nonnegative(), package: z.string() });

/** Downloads over the last seven days that npm has counted. Null when npm counts none for the package. Rejects with UpstreamFailed when it does not answer. */
export function createNpmDownloads(upstream: Upstream, baseUrl: string) {
  return async (name: string, signal?: AbortSignal): Promise<number | null> => {
    // Unlike the registry, this API takes scoped names with a plain slash.
    const url = `${baseUrl}/downloads/point/last-week/${name}`;
    const point = await upstream.json({ url, ...(signal && { signal }) }, pointSchema);
    return point?.package === name ? point.downloads : null;
  };
}
