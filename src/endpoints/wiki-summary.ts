import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { sourceSchema } from '../lib/source.ts';
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

const EXAMPLE_URL = 'https://en.wikipedia.org/wiki/Dart_(programming_language)';

/** The summary of an article, in a few sentences. */
export const wikiSummary = defineEndpoint({
  path: '/wiki/summary',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Encyclopedia summary',
  summary:
    'A short plain-text summary of a Wikipedia article, its description, image and last update; of a disambiguation page the articles it leads to; CC BY-SA 4.0.',
  params: z.object({ title: titleParam, lang: langParam }),
  result: z.strictObject({
    title: z.string().meta({ description: 'Title of the article, after redirects' }),
    lang: langField,
    summary: z.string().nullable().meta({ description: 'Plain text; null when the page has none' }),
    image: z
      .strictObject({
        url: z.string().meta({ description: 'In the size that Wikipedia shows' }),
        width: z.int().meta({ description: 'In pixels' }),
        height: z.int().meta({ description: 'In pixels' }),
        originalUrl: z.string().nullable().meta({ description: 'In full size' }),
      })
      .nullable()
      .meta({ description: 'Its licence is its own: see its page on Wikipedia' }),
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
  async run({ title, lang }, { wiki }: Pick<Sources, 'wiki'>, signal) {
    const found = await wiki.summary(lang, title, signal);
    if (found === null) throw noArticle(lang, title);
    const { data } = found;
    const { parts, missing } = await readMeanings(wiki, lang, data, signal);
    return {
      ...data,
      lang,
      meanings: parts.meanings,
      missing,
      licence: LICENCE,
      attribution: attributionOf(data.title, data.url),
      source: wikiSource(lang, found),
    };
  },
});
