import { z } from 'zod';
import type { Upstream } from '../client/http.ts';

const pointSchema = z.object({ downloads: z.int().nonnegative(), package: z.string() });

/**
 * Downloads over the last seven days that npm has counted, or null when it can't be had: the figure is an extra,
 * for which a call that is otherwise answered must not fail.
 */
export function createNpmDownloads(upstream: Upstream, baseUrl: string) {
  return async (name: string, signal?: AbortSignal): Promise<number | null> => {
    // Unlike the registry, this API takes scoped names with a plain slash.
    const url = `${baseUrl}/downloads/point/last-week/${name}`;
    const point = await upstream.json({ url, ...(signal && { signal }) }, pointSchema).catch(() => null);
    return point?.package === name ? point.downloads : null;
  };
}
