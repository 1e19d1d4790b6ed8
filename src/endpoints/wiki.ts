import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { integerParam } from '../catalogue/params.ts';
import { BadParameter, NotFound } from '../errors.ts';
import { sourceSchema } from '../lib/service.ts';
import { clipText } from '../lib/untrusted.ts';
import type { Dated, Retrieved } from '../upstream/client/client.ts';
import { MAX_MEANINGS, WIKI_EDITIONS, type Wiki, type WikiPage } from '../upstream/wikipedia.ts';
import { field, gatherParts, missingField, readFrom } from './fields.ts';

// Wikipedia's articles. Every answer carries the licence and the attribution that the text must be passed on with.

/** MediaWiki's limit on titles, in bytes. */
const MAX_TITLE_BYTES = 255;

const langParam = z
  .string()
  .transform((text) => text.toLowerCase())
  .refine((code) => WIKI_EDITIONS.has(code), 'no language edition of Wikipedia; for example en, de, zh-yue, simple')
  .prefault('en')
  .meta({ description: 'Language edition, by its subdomain', default: 'en' });

/** An article's title as plain text. An underscore counts as a space. */
const titleParam = z
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

/** Images have licences of their own. */
const LICENCE = 'CC BY-SA 4.0' as const;
const LICENCE_URL = 'https://creativecommons.org/licenses/by-sa/4.0/';

const licenceFields = {
  licence: z.literal(LICENCE).meta({ description: 'Of the text; an image has its own' }),
  attribution: field.text('To be given along with the text'),
};

const langField = field.text('Language edition');
const articleUrlField = field.text('The article, for people');

const descriptionField = field.textOrNull('What it is, in a few words; null when the page has none');

const thumbnailField = field.objectOrNull('Its licence is its own: see its page on Wikipedia', {
  url: field.text('The image, at a small width'),
  width: field.integerOrNull('In pixels'),
  height: field.integerOrNull('In pixels'),
});

const meaningsField = z
  .array(z.strictObject({ title: z.string(), description: descriptionField, url: articleUrlField }))
  .nullable()
  .meta({
    description:
      `Of a disambiguation page the articles that it links to, by title, at most ${MAX_MEANINGS}; null for any other ` +
      'page, and when they cannot be read',
  });

const articleFields = {
  updatedAt: field.at('Newest edit').nullable(),
  disambiguation: field.boolean('true: the page lists articles of that name; see `meanings`'),
  description: descriptionField,
  thumbnail: thumbnailField,
  meanings: meaningsField,
  missing: missingField,
  url: articleUrlField,
  ...licenceFields,
  source: sourceSchema,
};

const SEARCH_ATTRIBUTION =
  `Wikipedia contributors; each excerpt is from the article at its url, ${LICENCE} (${LICENCE_URL}); converted to ` +
  'plain text and shortened';

/** CirrusSearch refuses longer queries. */
const MAX_QUERY = 300;

export const wikiSearch = defineEndpoint({
  path: '/wiki/search',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Encyclopedia search',
  summary: 'Matching Wikipedia articles with excerpts and images; CC BY-SA 4.0.',
  notFor: 'the web at large, or for news',
  tags: 'find wikipedia pages about a topic, knowledge',
  ofChain: false,
  params: z.object({
    q: z
      .string({ error: 'required: what to search for' })
      .transform((text) => text.trim())
      .refine((text) => text.length >= 1 && text.length <= MAX_QUERY, `1 to ${MAX_QUERY} characters`)
      .meta({ description: "What to search for; Wikipedia's search operators work" }),
    limit: integerParam({ min: 1, max: 20, default: 5, description: 'How many articles at most' }),
    lang: langParam,
  }),
  result: z.strictObject({
    query: z.string(),
    lang: langField,
    results: field.list('Best first; empty when nothing fits', {
      title: z.string(),
      description: field.textOrNull('A few words on what it is; null when it has none'),
      excerpt: field.textOrNull('Plain text around the match'),
      thumbnail: thumbnailField,
      url: articleUrlField,
    }),
    ...licenceFields,
    source: sourceSchema,
  }),
  example: {
    params: { q: 'jupiter', limit: '1' },
    result: {
      query: 'jupiter',
      lang: 'en',
      results: [
        {
          title: 'Jupiter',
          description: 'Fifth planet from the Sun',
          excerpt: 'Jupiter is the fifth planet from the Sun and the largest in the Solar System. It is a gas giant',
          thumbnail: null,
          url: 'https://en.wikipedia.org/wiki/Jupiter',
        },
      ],
      licence: LICENCE,
      attribution: SEARCH_ATTRIBUTION,
      source: {
        name: 'Wikipedia (en)',
        url: 'https://en.wikipedia.org/w/rest.php/v1/search/page?q=jupiter&limit=1',
        retrievedAt: 1795199401,
        licence: LICENCE,
      },
    },
  },
  async run({ q, limit, lang }, { wiki }: { wiki: Wiki }, signal) {
    const found = await wiki.search(lang, q, limit, signal);
    return { query: q, lang, results: found.data, attribution: SEARCH_ATTRIBUTION, ...licensed(lang, found) };
  },
});

const EXAMPLE_URL = 'https://en.wikipedia.org/wiki/Dart_(programming_language)';

export const wikiSummary = defineEndpoint({
  path: '/wiki/summary',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Encyclopedia summary',
  summary:
    'A short plain-text summary of a Wikipedia article, its description, image and last update; of a disambiguation ' +
    'page the articles it leads to; CC BY-SA 4.0.',
  notFor: 'finding an article: it needs the title',
  tags: 'explain a topic, short explanation, what is it, who is it, intro, overview, facts',
  ofChain: false,
  params: z.object({ title: titleParam, lang: langParam }),
  result: z.strictObject({
    title: field.text('Title of the article, after redirects'),
    lang: langField,
    summary: field.textOrNull('Plain text; null when the page has none'),
    image: field.objectOrNull('Its licence is its own: see its page on Wikipedia', {
      url: field.text('In the size that Wikipedia shows'),
      width: z.int().meta({ description: 'In pixels' }),
      height: z.int().meta({ description: 'In pixels' }),
      originalUrl: field.textOrNull('In full size'),
    }),
    ...articleFields,
  }),
  example: {
    params: { title: 'Dart (programming language)' },
    result: {
      title: 'Dart (programming language)',
      lang: 'en',
      summary: 'Dart is a programming language designed by Lars Bak and Kasper Lund and developed by Google.',
      image: null,
      updatedAt: 1774722247,
      disambiguation: false,
      description: 'Programming language',
      thumbnail: null,
      meanings: null,
      missing: [],
      url: EXAMPLE_URL,
      licence: LICENCE,
      attribution: attributionOf('Dart (programming language)', EXAMPLE_URL),
      source: {
        name: 'Wikipedia (en)',
        url: 'https://en.wikipedia.org/api/rest_v1/page/summary/Dart_(programming_language)',
        retrievedAt: 1795199401,
        licence: LICENCE,
      },
    },
  },
  async run({ title, lang }, { wiki }: { wiki: Wiki }, signal) {
    const found = await wiki.summary(lang, title, signal);
    if (found === null) throw noArticle(lang, title);
    return { ...found.data, ...(await describeRead(wiki, lang, found, signal)) };
  },
});

const MAX_CHARACTERS = 20_000;

/** More than any article has: the longest pages have two million bytes. */
const MAX_OFFSET = 5_000_000;

const offsetParam = integerParam({
  min: 0,
  max: MAX_OFFSET,
  default: 0,
  description: 'Characters of the article to skip: `nextOffset` of the answer before',
});

const EXAMPLE_ARTICLE_URL = 'https://en.wikipedia.org/wiki/Python_(programming_language)';

export const wikiArticle = defineEndpoint({
  path: '/wiki/article',
  access: 'paid',
  priceUsd: '0.003',
  label: 'Encyclopedia article',
  summary:
    'The plain text of a Wikipedia article, up to 20,000 characters from any offset, with description and image; CC ' +
    'BY-SA 4.0.',
  notFor: 'finding an article: it needs the title',
  tags: 'whole wikipedia page, full text, read an entry in full',
  ofChain: false,
  params: z.object({ title: titleParam, lang: langParam, offset: offsetParam }),
  result: z.strictObject({
    title: field.text('Title of the article, after redirects'),
    lang: langField,
    text: field.text(
      `Plain text, at most ${MAX_CHARACTERS} characters, headings on lines of their own; tables, formulas and ` +
        'references are not in it',
    ),
    characters: field.count('How many characters `text` has'),
    truncated: field.boolean('true when the article goes on'),
    offset: field.count('How many characters of the article come before `text`'),
    nextOffset: field.countOrNull('The `offset` with which the article goes on; null at its end'),
    totalCharacters: field.count('How many characters the article has'),
    ...articleFields,
  }),
  example: {
    params: { title: 'Python (programming language)' },
    result: {
      title: 'Python (programming language)',
      lang: 'en',
      text: 'Python is a high-level, general-purpose programming language.',
      characters: 61,
      truncated: false,
      offset: 0,
      nextOffset: null,
      totalCharacters: 61,
      updatedAt: 1774722247,
      disambiguation: false,
      description: 'General-purpose programming language',
      thumbnail: null,
      meanings: null,
      missing: [],
      url: EXAMPLE_ARTICLE_URL,
      licence: LICENCE,
      attribution: attributionOf('Python (programming language)', EXAMPLE_ARTICLE_URL),
      source: {
        name: 'Wikipedia (en)',
        url: 'https://en.wikipedia.org/w/api.php?action=query&format=json&titles=Python+%28programming+language%29',
        retrievedAt: 1795199401,
        licence: LICENCE,
      },
    },
  },
  async run({ title, lang, offset }, { wiki }: { wiki: Wiki }, signal) {
    const found = await wiki.article(lang, title, signal);
    if (found === null || found.data.text === '') throw noArticle(lang, title);
    const part = partFrom(found.data.text, offset);
    return { ...found.data, ...part, ...(await describeRead(wiki, lang, found, signal)) };
  },
});

/** A text from `offset` on, in code points. Throws BadParameter for an offset at which the text is over. */
function partFrom(text: string, offset: number) {
  const skipped = clipText(text, offset);
  const rest = text.slice(skipped.text.length);
  const part = clipText(rest, MAX_CHARACTERS);
  const totalCharacters = skipped.characters + clipText(rest, Number.POSITIVE_INFINITY).characters;
  if (offset > 0 && rest === '') {
    throw new BadParameter([{ path: 'offset', message: `the article has ${totalCharacters} characters` }]);
  }
  return { ...part, offset, nextOffset: part.truncated ? offset + part.characters : null, totalCharacters };
}

/** What breaks MediaWiki's rules (mediawiki.org/wiki/Manual:Page_title): the title becomes part of a path. */
function titleFault(title: string): string | null {
  if (title === '') return "an article's title";
  if (Buffer.byteLength(title) > MAX_TITLE_BYTES) return `longer than ${MAX_TITLE_BYTES} bytes`;
  if (/[#<>[\]|{}\p{Cc}\u{FFFD}]|~~~|%[0-9a-f]{2}/iu.test(title)) return 'contains characters that titles cannot have';
  if (/^:|^\.{1,2}(\/|$)|\/\.{1,2}(\/|$)/.test(title)) return 'begins or ends in a way that titles cannot';
  return null;
}

function noArticle(lang: string, title: string): NotFound {
  return new NotFound(`${lang}.wikipedia.org has no article "${title}"`);
}

/** What both answers say beside the page itself. Only a disambiguation page costs a request for its meanings. */
async function describeRead(wiki: Wiki, lang: string, found: Dated<WikiPage>, signal: AbortSignal) {
  const { title, url, disambiguation } = found.data;
  const tasks = {
    meanings: async (within: AbortSignal) => (disambiguation ? wiki.meanings(lang, title, within) : null),
  };
  const { parts, missing } = await gatherParts(tasks, signal);
  return { lang, ...parts, missing, attribution: attributionOf(title, url), ...licensed(lang, found) };
}

function attributionOf(title: string, url: string): string {
  return (
    `"${title}" by Wikipedia contributors, ${url}, ${LICENCE} (${LICENCE_URL}); converted to plain text, possibly ` +
    'shortened'
  );
}

function licensed(lang: string, read: Retrieved) {
  return { licence: LICENCE, source: { name: `Wikipedia (${lang})`, ...readFrom(read), licence: LICENCE } };
}
