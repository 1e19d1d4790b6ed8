import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import type { Upstream } from '../client/http.ts';
import { type Listing, listed, MISSING } from './listing.ts';
import type { OsvQuestion } from './osv-question.ts';
import { normalisePypiName } from './package-names.ts';

const project = z.object({ info: z.object({ name: z.string() }) }).transform(({ info }) => info.name);

/** PyPI sends it with every project that it has (https://docs.pypi.org/api/json/), so an answer with it is PyPI's own. */
const SERIAL = 'x-pypi-last-serial';

/**
 * Whether PyPI has a project, or one release of it. The document lists every file of every release, up to some megabytes, and its existence alone is
 * asked for. So only its head is read. A host that does not answer as PyPI does, such as a mirror, is asked for the document.
 */
export function createPypiListing(upstream: Upstream, baseUrl: string) {
  return async ({ name, version }: OsvQuestion, signal?: AbortSignal): Promise<Listing> => {
    const release = version === null ? '' : `/${encodeURIComponent(version)}`;
    const request = { url: `${baseUrl}/pypi/${name}${release}/json`, ...(signal && { signal }) };
    const head = await upstream.fetch({ ...request, method: 'HEAD' });
    if (head.status === 404) return MISSING;
    if (head.status === 200 && head.headers[SERIAL] !== undefined) return listed(name);
    if (head.status === 429 || head.status >= 500)
      throw new UpstreamFailed(upstream.name, `answered HTTP ${head.status}`);
    const found = await upstream.json(request, project);
    if (found === null) return MISSING;
    if (normalisePypiName(found) !== name) throw new UpstreamFailed(upstream.name, 'answered for another package');
    return listed(name);
  };
}
