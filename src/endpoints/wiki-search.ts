import { z } from 'zod';
import { defineEndpoint } from '../catalogue/endpoint.ts';
import { integerParam } from '../catalogue/params.ts';
import { sourceSchema } from '../lib/source.ts';
import type { Sources } from './sources.ts';
import {
  articleUrlField,
  LICENCE,
  langField,
  langParam,
  licenceFields,
  SEARCH_ATTRIBUTION,
  thumbnailField,
  wikiSource,
} from './wiki-fields.ts';

/** CirrusSearch refuses longer queries. */
const MAX_QUERY = 300;

/** The articles that match a search best. */
export const wikiSearch = defineEndpoint({
  path: '/wiki/search',
  access: 'paid',
  priceUsd: '0.001',
  label: 'Encyclopedia search',
  summary: 'Matching Wikipedia articles with excerpts and images; CC BY-SA 4.0.',
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
    results: z
      .array(
        z.strictObject({
          title: z.string(),
          description: z.string().nullable().meta({ description: 'A few words on what it is; null when it has none' }),
          excerpt: z.string().nullable().meta({ description: 'Plain text around the match' }),
          thumbnail: thumbnailField,
          url: articleUrlField,
        }),
      )
      .meta({ description: 'Best first; empty when nothing fits' }),
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
  async run({ q, limit, lang }, { wiki }: Pick<Sources, 'wiki'>, signal) {
    const found = await wiki.search(lang, q, limit, signal);
    return {
      query: q,
      lang,
      results: [...found.data],
      licence: LICENCE,
      attribution: SEARCH_ATTRIBUTION,
      source: wikiSource(lang, found),
    };
  },
});
