import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { clipText } from '../lib/clip-text.ts';
import { sourceSchema } from '../lib/source.ts';
import { atField } from './chain-fields.ts';
import type { Sources } from './sources.ts';
import {
  articleUrlField,
  attributionOf,
  LICENCE,
  langField,
  langParam,
  licenceFields,
  noArticle,
  titleParam,
  wikiSource,
} from './wiki-fields.ts';

/** The route promises at most this much text. */
const MAX_CHARACTERS = 20_000;

const EXAMPLE_URL = 'https://en.wikipedia.org/wiki/Python_(programming_language)';

/** An article's text. */
export const wikiArticle = defineEndpoint({
  path: '/wiki/article',
  access: 'paid',
  priceUsd: '0.003',
  label: 'Encyclopedia article',
  summary: 'The plain text of a Wikipedia article, up to 20,000 characters; CC BY-SA 4.0.',
  params: z.object({ title: titleParam, lang: langParam }),
  result: z.strictObject({
    title: z.string().meta({ description: 'Title of the article, after redirects' }),
    lang: langField,
    text: z.string().meta({
      description: `Plain text, at most ${MAX_CHARACTERS} characters, headings on lines of their own; tables, formulas and references are not in it`,
    }),
    characters: z.int().nonnegative().meta({ description: 'How many characters `text` has' }),
    truncated: z.boolean().meta({ description: 'true when the article goes on' }),
    updatedAt: atField('Newest edit').nullable(),
    disambiguation: z.boolean().meta({ description: 'true: the page lists articles of that name' }),
    url: articleUrlField,
    ...licenceFields,
    source: sourceSchema,
  }),
  example: {
    params: { title: 'Python (programming language)' },
    result: {
      title: 'Python (programming language)',
      lang: 'en',
      text: 'Python is a high-level, general-purpose programming language.',
      characters: 61,
      truncated: false,
      updatedAt: 1774722247,
      disambiguation: false,
      url: EXAMPLE_URL,
      licence: LICENCE,
      attribution: attributionOf('Python (programming language)', EXAMPLE_URL),
      source: {
        name: 'Wikipedia (en)',
        url: 'https://en.wikipedia.org/w/api.php?action=query&format=json&titles=Python+%28programming+language%29',
        retrievedAt: 1795199401,
        licence: LICENCE,
      },
    },
  },
  async run({ title, lang }, { wiki }: Pick<Sources, 'wiki'>, signal) {
    const found = await wiki.article(lang, title, signal);
    if (found === null || found.data.text === '') throw noArticle(lang, title);
    const { text, ...article } = found.data;
    return {
      ...article,
      lang,
      ...clipText(text, MAX_CHARACTERS),
      licence: LICENCE,
      attribution: attributionOf(article.title, article.url),
      source: wikiSource(lang, found),
    };
  },
});
