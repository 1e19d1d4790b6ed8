import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import type { Upstream } from '../client/http.ts';
import type { Listing } from './listing.ts';
import type { OsvQuestion } from './osv-question.ts';
import { compareNumeric } from './versions.ts';

const versionsSchema = z.object({ versions: z.array(z.string()).min(1) }).transform(({ versions }) => versions);

/** A manifest is a few kilobytes, and its id stands at its beginning. */
const ID = /<id>\s*([\w.-]{1,100})\s*<\/id>/;

/**
 * NuGet's package content (https://learn.microsoft.com/nuget/api/package-base-address-resource). NuGet ignores the letter case of ids and its addresses
 * are in lower case, but advisories are filed under the id as its author spells it, which only a package's manifest has. So that is read too: in another
 * spelling a package with advisories would look clean.
 */
export function createNugetListing(upstream: Upstream, baseUrl: string) {
  return async ({ name, version }: OsvQuestion, signal?: AbortSignal): Promise<Listing> => {
    const id = name.toLowerCase();
    const within = signal && { signal };
    const versions = await upstream.json(
      { url: `${baseUrl}/v3-flatcontainer/${id}/index.json`, ...within },
      versionsSchema,
    );
    const exact = versions?.findLast((one) => version === null || isSame(one, version));
    if (exact === undefined) return { state: 'missing' };
    const url = `${baseUrl}/v3-flatcontainer/${id}/${encodeURIComponent(exact)}/${id}.nuspec`;
    const manifest = await upstream.fetch({ url, accept: 'application/xml', ...within });
    if (manifest.status !== 200) throw new UpstreamFailed(upstream.name, `answered HTTP ${manifest.status}`);
    const spelling = ID.exec(manifest.body.toString('utf8'))?.[1];
    if (spelling?.toLowerCase() !== id)
      throw new UpstreamFailed(upstream.name, 'answered a manifest of another package');
    return { state: 'listed', name: spelling };
  };
}

/** NuGet ignores letter case, needless zeros and build metadata (https://learn.microsoft.com/nuget/concepts/package-versioning). */
function isSame(published: string, asked: string): boolean {
  const bare = (text: string) => text.toLowerCase().replace(/\+.*$/, '');
  return bare(published) === bare(asked) || compareNumeric(bare(published), bare(asked)) === 0;
}
