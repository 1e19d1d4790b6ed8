import { decodeHTML } from 'entities';
import type { z } from 'zod';
import { UpstreamFailed } from '../../errors.ts';
import { secondsOf } from '../../lib/clock.ts';
import { firstToAnswer } from '../client/fallback.ts';
import type { Dated, Upstream } from '../client/http.ts';
import { articleUrl } from './article-url.ts';
import { createMeanings, type WikiMeaning } from './disambiguation.ts';
import { readThumbnail, type Thumbnail } from './thumbnail.ts';
import { actionSearchSchema, articleSchema, restSearchSchema, summarySchema } from './wiki-schemas.ts';

/** One search result. */
export interface WikiHit {
  readonly title: string;
  readonly description: string | null;
  readonly excerpt: string | null;
  readonly thumbnail: Thumbnail | null;
  readonly url: string;
}

/** The fields that summary and article share. `updatedAt` is the newest edit in Unix seconds. */
export interface WikiPage {
  readonly title: string;
  readonly updatedAt: number | null;
  readonly disambiguation: boolean;
  /** What it is, in a few words; null when the page has none. */
  readonly description: string | null;
  readonly thumbnail: Thumbnail | null;
  readonly url: string;
}

export interface WikiSummary extends WikiPage {
  readonly summary: string | null;
  readonly image: { url: string; width: number; height: number; originalUrl: string | null } | null;
}

export interface WikiArticle extends WikiPage {
  readonly text: string;
}

/** Reads one language edition; `lang` must be on the list of editions, titles are plain text with blanks. Null: no such article. */
export interface Wiki {
  search(lang: string, query: string, limit: number, signal?: AbortSignal): Promise<Dated<readonly WikiHit[]>>;
  summary(lang: string, title: string, signal?: AbortSignal): Promise<Dated<WikiSummary> | null>;
  article(lang: string, title: string, signal?: AbortSignal): Promise<Dated<WikiArticle> | null>;
  /** The articles that a disambiguation page leads to, by title, at most fifty. */
  meanings(lang: string, title: string, signal?: AbortSignal): Promise<WikiMeaning[]>;
}

/** One of the widths that Wikimedia serves, and about that of the REST summary's. */
const THUMBNAIL_PIXELS = 330;

/** The question for an article's text and what stands beside it. */
const ARTICLE = {
  ...{ prop: 'extracts|revisions|pageprops|description|pageimages', redirects: '1' },
  ...{ explaintext: '1', exsectionformat: 'plain', rvprop: 'timestamp', ppprop: 'disambiguation' },
  ...{ piprop: 'thumbnail', pithumbsize: String(THUMBNAIL_PIXELS) },
};

/** The namespace of articles; talk, user and help pages are not sold. */
const ARTICLES = 0;

/** Wikipedia through its REST and action APIs. `origin` holds `{lang}` where the edition's name goes. */
export function createWiki(upstream: Upstream, origin: string): Wiki {
  const at = (lang: string, path: string) => `${origin.replace('{lang}', lang)}${path}`;
  const get = <T>(url: string, schema: z.ZodType<T>, signal?: AbortSignal) =>
    upstream.jsonDated({ url, ...(signal && { signal }) }, schema);
  const action = (lang: string, params: Record<string, string>) =>
    at(lang, `/w/api.php?${new URLSearchParams({ action: 'query', format: 'json', formatversion: '2', ...params })}`);

  async function restSearch(lang: string, q: string, limit: number, signal?: AbortSignal) {
    const url = at(lang, `/w/rest.php/v1/search/page?${new URLSearchParams({ q, limit: String(limit) })}`);
    const { data, ...rest } = required(upstream, await get(url, restSearchSchema, signal));
    const hits = data.pages.map(({ title, key, description, excerpt, thumbnail }) => ({
      title,
      description: plain(description),
      excerpt: plain(excerpt),
      thumbnail: readThumbnail(thumbnail),
      url: articleUrl(lang, key),
    }));
    return { ...rest, data: hits.slice(0, limit) };
  }

  async function actionSearch(lang: string, q: string, limit: number, signal?: AbortSignal) {
    const params = { list: 'search', srsearch: q, srlimit: String(limit), srnamespace: String(ARTICLES) };
    const { data, ...rest } = required(upstream, await get(action(lang, params), actionSearchSchema, signal));
    const { search } = required(upstream, data.query, data.error);
    const hits = search.map(({ title, snippet }) => ({
      title,
      description: null,
      excerpt: plain(snippet),
      thumbnail: null,
      url: articleUrl(lang, title),
    }));
    return { ...rest, data: hits.slice(0, limit) };
  }

  return {
    search: (lang, query, limit, signal) =>
      firstToAnswer('Wikipedia search', [
        () => restSearch(lang, query, limit, signal),
        () => actionSearch(lang, query, limit, signal),
      ]),

    async summary(lang, title, signal) {
      const url = at(lang, `/api/rest_v1/page/summary/${encodeURIComponent(title.replaceAll(' ', '_'))}`);
      const answer = await get(url, summarySchema, signal);
      return answer === null ? null : summaryOf(lang, answer);
    },

    async article(lang, title, signal) {
      const params = { ...ARTICLE, titles: title };
      const { data, ...rest } = required(upstream, await get(action(lang, params), articleSchema, signal));
      const article = articleOf(lang, upstream, data);
      return article && { ...rest, data: article };
    },

    meanings: createMeanings(upstream, action),
  };
}

function summaryOf(lang: string, { data, ...rest }: Dated<z.output<typeof summarySchema>>): Dated<WikiSummary> | null {
  const { type, title, namespace, timestamp, titles, description, extract, thumbnail, originalimage } = data;
  if ((namespace?.id ?? ARTICLES) !== ARTICLES) return null;
  const shown = thumbnail ?? originalimage;
  const { source, width, height } = shown ?? { source: '', width: 0, height: 0 };
  return {
    ...rest,
    data: {
      title,
      updatedAt: secondsOf(timestamp),
      disambiguation: type === 'disambiguation',
      description: plain(description),
      thumbnail: readThumbnail(thumbnail),
      url: articleUrl(lang, titles?.canonical ?? title),
      summary: extract.trim() || null,
      image: shown ? { url: source, width, height, originalUrl: originalimage?.source ?? null } : null,
    },
  };
}

/** Null where there is no such article. Throws where there is one without its text. */
function articleOf(
  lang: string,
  upstream: Upstream,
  { query, error }: z.output<typeof articleSchema>,
): WikiArticle | null {
  const page = required(upstream, query, error).pages?.[0];
  // A title of another project (`fr:Paris`) gives no page, and a bad title an invalid page.
  if (!page || isSet(page.missing) || isSet(page.invalid) || (page.ns ?? ARTICLES) !== ARTICLES) return null;
  if (page.extract === undefined) throw new UpstreamFailed(upstream.name, 'answered without a text');
  return {
    title: page.title,
    updatedAt: secondsOf(page.revisions?.[0]?.timestamp),
    disambiguation: page.pageprops?.disambiguation !== undefined,
    description: plain(page.description),
    thumbnail: readThumbnail(page.thumbnail),
    url: articleUrl(lang, page.title),
    text: page.extract
      .replace(/\n{3,}/g, '\n\n')
      .trim()
      .normalize('NFC'),
  };
}

/** A flag of the action API: true, or in format version 1 an empty string. */
function isSet(flag: boolean | string | undefined): boolean {
  return flag !== undefined && flag !== false;
}

function required<T>(upstream: Upstream, answer: T | null | undefined, error?: unknown): T {
  if (answer === null || answer === undefined) {
    throw new UpstreamFailed(upstream.name, error ? 'refused the question' : 'answered without data');
  }
  return answer;
}

/** The plain text of an excerpt, without the marks around found words and with entities decoded. Null when it is empty. */
function plain(html: string | null | undefined): string | null {
  const text = decodeHTML((html ?? '').replace(/<[^>]*>/g, ''))
    .replace(/\s+/g, ' ')
    .trim();
  return text === '' ? null : text;
}
