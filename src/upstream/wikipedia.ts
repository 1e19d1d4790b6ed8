import { decodeHTML } from 'entities';
import { z } from 'zod';
import { UpstreamFailed } from '../errors.ts';
import { secondsOf } from '../lib/clock.ts';
import { plainText } from '../lib/untrusted.ts';
import { type Dated, HOUR_MS, MIB, MINUTE_MS, type Opening, type Upstream } from './client/client.ts';
import { firstToAnswer } from './client/failure.ts';

/** One language edition; `lang` must be in WIKI_EDITIONS, titles are plain text with blanks. Null: no such article. */
export interface Wiki {
  search(lang: string, query: string, limit: number, signal?: AbortSignal): Promise<Dated<WikiHit[]>>;
  summary(lang: string, title: string, signal?: AbortSignal): Promise<Dated<WikiSummary> | null>;
  article(lang: string, title: string, signal?: AbortSignal): Promise<Dated<WikiArticle> | null>;
  /** The articles that a disambiguation page leads to, by title, at most fifty. */
  meanings(lang: string, title: string, signal?: AbortSignal): Promise<WikiEntry[]>;
}

interface WikiEntry {
  readonly title: string;
  readonly description: string | null;
  readonly url: string;
}

interface WikiHit extends WikiEntry {
  readonly excerpt: string | null;
  readonly thumbnail: Thumbnail | null;
}

/** The fields that summary and article share. `updatedAt` is the newest edit in Unix seconds. */
export interface WikiPage extends WikiEntry {
  readonly updatedAt: number | null;
  readonly disambiguation: boolean;
  readonly thumbnail: Thumbnail | null;
}

interface WikiSummary extends WikiPage {
  readonly summary: string | null;
  readonly image: { url: string; width: number; height: number; originalUrl: string | null } | null;
}

interface WikiArticle extends WikiPage {
  readonly text: string;
}

/** A small image of a page. Its licence is its own. */
interface Thumbnail {
  readonly url: string;
  /** In pixels; null when Wikipedia does not say. */
  readonly width: number | null;
  readonly height: number | null;
}

/** One of the widths that Wikimedia serves, and about that of the REST summary's. */
const THUMBNAIL_PIXELS = 330;

const ARTICLE = {
  prop: 'extracts|revisions|pageprops|description|pageimages',
  redirects: '1',
  explaintext: '1',
  exsectionformat: 'plain',
  rvprop: 'timestamp',
  ppprop: 'disambiguation',
  piprop: 'thumbnail',
  pithumbsize: String(THUMBNAIL_PIXELS),
};

/** The namespace of articles; talk, user and help pages are not sold. */
const ARTICLES = 0;

/** Three at a time and a cache: Wikimedia asks for it (https://www.mediawiki.org/wiki/API:Etiquette). */
const BOUNDS = { name: 'Wikipedia', timeoutMs: 6000, maxBytes: 4 * MIB, concurrency: 3, retries: 0 } as const;
const CACHE = { ttlMs: 10 * MINUTE_MS, staleIfErrorMs: 24 * HOUR_MS, maxEntries: 2000 };

/** The URL holds `{lang}`. Search and summaries ask the REST API, texts, meanings, second searches the action API. */
export function createWiki({ upstreams, config }: Opening<'names'>): Wiki {
  const upstream = upstreams.open({ ...BOUNDS, cache: CACHE });
  const origin = config.names.wikipedia;
  const at = (lang: string, path: string) => `${origin.replace('{lang}', lang)}${path}`;
  const get = <T>(url: string, schema: z.ZodType<T>, signal?: AbortSignal) =>
    upstream.jsonDated({ url, signal }, schema);
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

/** At most this many: one page of the action API. */
export const MAX_MEANINGS = 50;
const MAX_TEXT = 300;

/** A disambiguation page's meanings, and what it names beside them (https://www.mediawiki.org/wiki/API:Links). */
function createMeanings(upstream: Upstream, action: (lang: string, params: Record<string, string>) => string) {
  return async (lang: string, title: string, signal?: AbortSignal): Promise<WikiEntry[]> => {
    const url = action(lang, {
      generator: 'links',
      gplnamespace: '0',
      gpllimit: String(MAX_MEANINGS),
      prop: 'description',
      titles: title,
      redirects: '1',
    });
    const data = await upstream.json({ url, signal }, linksSchema);
    if (!data || data.error) throw new UpstreamFailed(upstream.name, 'refused the question');
    const found = (data.query?.pages ?? []).filter(({ missing }) => !isSet(missing));
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

function isSet(flag: boolean | string | undefined): boolean {
  return flag !== undefined && flag !== false;
}

function required<T>(upstream: Upstream, answer: T | null | undefined, error?: unknown): T {
  if (answer === null || answer === undefined) {
    throw new UpstreamFailed(upstream.name, error ? 'refused the question' : 'answered without data');
  }
  return answer;
}

/** The plain text of an excerpt, without the marks around found words. Null when it is empty. */
function plain(html: string | null | undefined): string | null {
  const text = decodeHTML((html ?? '').replace(/<[^>]*>/g, ''))
    .replace(/\s+/g, ' ')
    .trim();
  return text === '' ? null : text;
}

/** The public address of an article, not that of a mirror. The title is encoded as MediaWiki does. */
function articleUrl(lang: string, title: string): string {
  const path = encodeURIComponent(title.replaceAll(' ', '_')).replace(/%(3A|2C|2F|3B|40|24)/g, decodeURIComponent);
  return `https://${lang}.wikipedia.org/wiki/${path}`;
}

/** Wikimedia's addresses are shorter. */
const MAX_URL = 1000;

/** Null for none, and for one whose address is no http(s) address. */
function readThumbnail(sent: z.output<typeof thumbnail>): Thumbnail | null {
  const stated = sent?.source ?? sent?.url ?? '';
  const url = stated.startsWith('//') ? `https:${stated}` : stated;
  if (!sent || url.length > MAX_URL || !/^https?:/.test(url) || !URL.canParse(url)) return null;
  return { url, width: sent.width ?? null, height: sent.height ?? null };
}

/** An image beside a text. What cannot be read of it must not hide the text. */
const thumbnail = z
  .object({
    /** `source` in the summary and the action API, `url` in search, where it may begin with `//`. */
    source: z.string().optional(),
    url: z.string().optional(),
    width: z.int().positive().nullish(),
    height: z.int().positive().nullish(),
  })
  .nullish()
  .catch(null);

const image = z.object({ source: z.string(), width: z.int(), height: z.int() });

const restSearchSchema = z.object({
  pages: z.array(
    z.object({
      key: z.string(),
      title: z.string(),
      excerpt: z.string().nullable(),
      description: z.string().nullish(),
      thumbnail,
    }),
  ),
});

/** The action API's error, which comes with HTTP 200. */
const error = z.object({ code: z.string() }).optional();

/** True or absent in format version 2; an empty string or absent in version 1. */
const flag = z.union([z.boolean(), z.string()]).optional();

const actionSearchSchema = z.object({
  error,
  query: z.object({ search: z.array(z.object({ title: z.string(), snippet: z.string() })) }).optional(),
});

/** REST summary, `/api/rest_v1/page/summary/{title}`. */
const summarySchema = z.object({
  type: z.string(),
  title: z.string(),
  namespace: z.object({ id: z.int() }).optional(),
  timestamp: z.string().optional(),
  thumbnail: image.optional(),
  originalimage: image.optional(),
  titles: z.object({ canonical: z.string() }).optional(),
  description: z.string().optional().catch(undefined),
  extract: z.string(),
});

const pageSchema = z.object({
  ns: z.int().optional(),
  title: z.string(),
  missing: flag,
  invalid: flag,
  extract: z.string().optional(),
  description: z.string().optional().catch(undefined),
  thumbnail,
  revisions: z.array(z.object({ timestamp: z.string() })).optional(),
  pageprops: z.object({ disambiguation: z.string().optional() }).optional(),
});

/** Action API, `prop=extracts|revisions|pageprops`: pages in a list (format version 2) or by their id (version 1). */
const articleSchema = z.object({
  error,
  query: z
    .object({
      pages: z
        .union([z.array(pageSchema), z.record(z.string(), pageSchema).transform((pages) => Object.values(pages))])
        .optional(),
    })
    .optional(),
});

const page = z.object({ title: z.string(), missing: flag, description: z.string().optional() });
/** Action API, `generator=links`. */
const linksSchema = z
  .object({ error, batchcomplete: z.unknown().optional(), query: z.object({ pages: z.array(page) }).optional() })
  // A page without links has no `query`. Any other answer without it must not count as that.
  .refine(
    ({ error, batchcomplete, query }) => (error ?? batchcomplete ?? query) !== undefined,
    'no answer to the query',
  );

/** Subdomains of wikipedia.org (dblists of operations/mediawiki-config, 2026-08-21). They go into host names. */
const OPEN = `
  ab ace ady af als alt am ami an ang ann anp ar arc ary arz as ast atj av avk awa ay az azb ba ban bar bat-smg bbc
  bcl bdr be be-tarask bew bg bh bi bjn blk bm bn bo bol bpy br bs btm bug bxr ca cbk-zam cdo ce ceb ch chr chy ckb co
  crh cs csb cu cv cy da dag de dga din diq dsb dtp dty dv dz ee el eml en eo es et eu ext fa fat ff fi fiu-vro fj fo
  fon fr frp frr fur fy ga gag gan gcr gd gl glk gn gom gor got gpe gu guc gur guw gv ha hak haw he hi hif hr hsb ht
  hu hy hyw ia iba id ie ig igl ik ilo inh io is isv it iu ja jam jbo jv ka kaa kab kai kaj kbd kbp kcg kg kge ki kk
  km kn knc ko koi krc ks ksh ku kus kv kw ky la lad lb lbe lez lfn lg li lij lld lmo ln lo lt ltg lv mad mag mai
  map-bms mdf mg mhr mi min mk ml mn mni mnw mos mr mrj ms mt mwl my myv mzn nah nap nds nds-nl ne new nia nl nn no
  nov nqo nr nrm nso nup nv ny oc olo om or os pa pag pam pap pcd pcm pdc pfl pi pl pms pnb pnt ppl ps pt pwn qu rki
  rm rmy rn ro roa-rup roa-tara rsk ru rue rw sa sah sat sc scn sco sd se sg sh shi shn si simple sk skr sl sm smn sn
  so sq sr srn ss st stq su sv sw syl szl szy ta tay tcy tdd te tet tg th ti tig tk tl tly tn to tok tpi tr trv ts tt
  tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo wa war wo wuu xal xh xmf yi yo za zea zgh zh zh-classical
  zh-min-nan zh-yue zu
`;

export const WIKI_EDITIONS: ReadonlySet<string> = new Set(OPEN.trim().split(/\s+/));
