import { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import { plainText } from '../../lib/untrusted.ts';
import type { Upstream } from '../client/http.ts';
import { articleUrl } from './article-url.ts';

/** An article that a disambiguation page leads to. */
export interface WikiMeaning {
  readonly title: string;
  /** What it is, in a few words; null when its page has none. */
  readonly description: string | null;
  readonly url: string;
}

/** At most this many: one page of the action API. */
export const MAX_MEANINGS = 50;
const MAX_TEXT = 300;

const page = z.object({
  title: z.string(),
  missing: z.union([z.boolean(), z.string()]).optional(),
  description: z.string().optional(),
});
const linksSchema = z
  .object({
    error: z.object({ code: z.string() }).optional(),
    batchcomplete: z.unknown().optional(),
    query: z.object({ pages: z.array(page) }).optional(),
  })
  // A page without links has no `query`. Any other answer without it must not count as that.
  .refine(
    ({ error, batchcomplete, query }) => (error ?? batchcomplete ?? query) !== undefined,
    'no answer to the query',
  );

/**
 * The articles that a page links to, by title: the meanings of a disambiguation page, and what it names beside them. One request of the action API
 * (https://www.mediawiki.org/wiki/API:Links, as a generator). `action` makes its URL.
 */
export function createMeanings(upstream: Upstream, action: (lang: string, params: Record<string, string>) => string) {
  return async (lang: string, title: string, signal?: AbortSignal): Promise<WikiMeaning[]> => {
    const url = action(lang, {
      ...{ generator: 'links', gplnamespace: '0', gpllimit: String(MAX_MEANINGS), prop: 'description' },
      ...{ titles: title, redirects: '1' },
    });
    const data = await upstream.json({ url, ...(signal && { signal }) }, linksSchema);
    if (!data || data.error) throw new UpstreamFailed(upstream.name, 'refused the question');
    const found = (data.query?.pages ?? []).filter(({ missing }) => missing === undefined || missing === false);
    return found
      .map(({ title: name, description }) => ({
        title: name,
        description: plainText(description, MAX_TEXT) || null,
        url: articleUrl(lang, name),
      }))
      .sort((a, b) => (a.title < b.title ? -1 : 1))
      .slice(0, MAX_MEANINGS);
  };
}
