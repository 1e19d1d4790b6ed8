import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { integerParam } from '../catalogue/params.ts';
import { BadParameter } from '../errors.ts';
import { sourceSchema } from '../lib/source.ts';
import { clipText } from '../lib/untrusted.ts';
import { atField } from './chain-fields.ts';
import { missingField } from './missing-field.ts';
import type { Sources } from './sources.ts';
import {
  articleUrlField,
  attributionOf,
  descriptionField,
  disambiguationField,
  LICENCE,
  langField,
  langParam,
  licenceFields,
  meaningsField,
  noArticle,
  readMeanings,
  thumbnailField,
  titleParam,
  wikiSource,
} from './wiki-fields.ts';

/** The route promises at most this much text. */
const MAX_CHARACTERS = 20_000;

/** More characters than any article has: the longest pages have two million bytes. */
const MAX_OFFSET = 5_000_000;

const count = z.int().nonnegative();

const offsetParam = integerParam({
  min: 0,
  max: MAX_OFFSET,
  default: 0,
  description: 'Characters of the article to skip: `nextOffset` of the answer before',
});

const EXAMPLE_URL = 'https://en.wikipedia.org/wiki/Python_(programming_language)';

/** An article's text. */
export const wikiArticle = defineEndpoint({
  path: '/wiki/article',
  access: 'paid',
  priceUsd: '0.003',
  label: 'Encyclopedia article',
  summary:
    'The plain text of a Wikipedia article, up to 20,000 characters from any offset, with description and image; CC BY-SA 4.0.',
  params: z.object({ title: titleParam, lang: langParam, offset: offsetParam }),
  result: z.strictObject({
    title: z.string().meta({ description: 'Title of the article, after redirects' }),
    lang: langField,
    text: z.string().meta({
      description: `Plain text, at most ${MAX_CHARACTERS} characters, headings on lines of their own; tables, formulas and references are not in it`,
    }),
    characters: z.int().nonnegative().meta({ description: 'How many characters `text` has' }),
    truncated: z.boolean().meta({ description: 'true when the article goes on' }),
    offset: count.meta({ description: 'How many characters of the article come before `text`' }),
    nextOffset: count.nullable().meta({ description: 'The `offset` with which the article goes on; null at its end' }),
    totalCharacters: count.meta({ description: 'How many characters the article has' }),
    updatedAt: atField('Newest edit').nullable(),
    disambiguation: disambiguationField,
    description: descriptionField,
    thumbnail: thumbnailField,
    meanings: meaningsField,
    missing: missingField,
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
      offset: 0,
      nextOffset: null,
      totalCharacters: 61,
      updatedAt: 1774722247,
      disambiguation: false,
      description: 'General-purpose programming language',
      thumbnail: null,
      meanings: null,
      missing: [],
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
  async run({ title, lang, offset }, { wiki }: Pick<Sources, 'wiki'>, signal) {
    const found = await wiki.article(lang, title, signal);
    if (found === null || found.data.text === '') throw noArticle(lang, title);
    const { text, ...article } = found.data;
    const part = partFrom(text, offset);
    const { parts, missing } = await readMeanings(wiki, lang, article, signal);
    return {
      ...article,
      lang,
      ...part,
      meanings: parts.meanings,
      missing,
      licence: LICENCE,
      attribution: attributionOf(article.title, article.url),
      source: wikiSource(lang, found),
    };
  },
});

/** The part of a text from `offset` on, both counted in code points. Throws BadParameter for an offset at which the text is over. */
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
