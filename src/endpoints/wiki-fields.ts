import { z } from 'zod';
import { NotFound } from '../errors.ts';
import { MAX_MEANINGS, WIKI_EDITIONS, type WikiPage } from '../upstream/wikipedia.ts';
import { gatherParts } from './optional-parts.ts';
import type { Sources } from './sources.ts';

/** The licence of Wikipedia's text; images have their own. */
export const LICENCE = 'CC BY-SA 4.0' as const;
const LICENCE_URL = 'https://creativecommons.org/licenses/by-sa/4.0/';

/** MediaWiki's limit on titles, in bytes. */
const MAX_TITLE_BYTES = 255;

export const langParam = z
  .string()
  .transform((text) => text.toLowerCase())
  .refine((code) => WIKI_EDITIONS.has(code), 'no language edition of Wikipedia; for example en, de, zh-yue, simple')
  .prefault('en')
  .meta({ description: 'Language edition, by its subdomain', default: 'en' });

/** An article's title in the query, as plain text. An underscore counts as a space. */
export const titleParam = z
  .string({ error: "required: an article's title" })
  .transform((text, context) => {
    const title = text
      .replace(/[\s_]+/g, ' ')
      .trim()
      .normalize('NFC');
    const fault = titleFault(title);
    if (fault === null) return title;
    context.addIssue({ code: 'custom', message: fault });
    return z.NEVER;
  })
  .meta({ description: 'Title of the article, in any letter case that the edition accepts; redirects are followed' });

/** Checks MediaWiki's rules for titles (https://www.mediawiki.org/wiki/Manual:Page_title), because the title becomes part of a path. */
function titleFault(title: string): string | null {
  if (title === '') return "an article's title";
  if (Buffer.byteLength(title) > MAX_TITLE_BYTES) return `longer than ${MAX_TITLE_BYTES} bytes`;
  if (/[#<>[\]|{}\p{Cc}\u{FFFD}]|~~~|%[0-9a-f]{2}/iu.test(title)) return 'contains characters that titles cannot have';
  if (/^:|^\.{1,2}(\/|$)|\/\.{1,2}(\/|$)/.test(title)) return 'begins or ends in a way that titles cannot';
  return null;
}

export const licenceFields = {
  licence: z.literal(LICENCE).meta({ description: 'Of the text; an image has its own' }),
  attribution: z.string().meta({ description: 'To be given along with the text' }),
};

export const langField = z.string().meta({ description: 'Language edition' });
export const articleUrlField = z.string().meta({ description: 'The article, for people' });

export const descriptionField = z
  .string()
  .nullable()
  .meta({ description: 'What it is, in a few words; null when the page has none' });

export const thumbnailField = z
  .strictObject({
    url: z.string().meta({ description: 'The image, at a small width' }),
    width: z.int().nullable().meta({ description: 'In pixels' }),
    height: z.int().nullable().meta({ description: 'In pixels' }),
  })
  .nullable()
  .meta({ description: 'Its licence is its own: see its page on Wikipedia' });

export const disambiguationField = z
  .boolean()
  .meta({ description: 'true: the page lists articles of that name; see `meanings`' });

export const meaningsField = z
  .array(z.strictObject({ title: z.string(), description: descriptionField, url: articleUrlField }))
  .nullable()
  .meta({
    description: `Of a disambiguation page the articles that it links to, by title, at most ${MAX_MEANINGS}; null for any other page, and when they cannot be read`,
  });

/** The meanings of a disambiguation page. Any other page has none, and costs no request. */
export function readMeanings(wiki: Sources['wiki'], lang: string, page: WikiPage, signal: AbortSignal) {
  const tasks = {
    meanings: async (within: AbortSignal) => (page.disambiguation ? wiki.meanings(lang, page.title, within) : null),
  };
  return gatherParts(tasks, signal);
}

/** The attribution that the licence requires beside the text. */
export function attributionOf(title: string, url: string): string {
  return `"${title}" by Wikipedia contributors, ${url}, ${LICENCE} (${LICENCE_URL}); converted to plain text, possibly shortened`;
}

/** The attribution of answers that quote many articles. */
export const SEARCH_ATTRIBUTION = `Wikipedia contributors; each excerpt is from the article at its url, ${LICENCE} (${LICENCE_URL}); converted to plain text and shortened`;

/** The 404 of every wiki route. */
export function noArticle(lang: string, title: string): NotFound {
  return new NotFound(`${lang}.wikipedia.org has no article "${title}"`);
}

/** The `source` member of an answer from Wikipedia. */
export function wikiSource(lang: string, { url, retrievedAtMs }: { url: string; retrievedAtMs: number }) {
  return { name: `Wikipedia (${lang})`, url, retrievedAt: Math.floor(retrievedAtMs / 1000), licence: LICENCE };
}
