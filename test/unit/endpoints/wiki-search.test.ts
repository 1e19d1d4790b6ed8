import { expect, test } from 'vitest';
import { BadParameter } from '../../../src/errors.ts';
import { NOW } from '../../support/upstream/names.ts';
import { ask, useNames } from '../../support/upstream/names-endpoints.ts';

const world = useNames();
const search = (query: Record<string, string>) => ask(world(), '/wiki/search', query);

test('the matching articles, with their licence', async () => {
  expect(await search({ q: ' jupiter ' })).toEqual({
    query: 'jupiter',
    lang: 'en',
    results: [
      {
        title: 'Jupiter (planet)',
        description: 'Fifth planet',
        excerpt: 'Jupiter is the fifth planet & the "largest" one',
        thumbnail: { url: 'https://upload.example.org/60px-J.jpg', width: 60, height: 50 },
        url: 'https://en.wikipedia.org/wiki/Jupiter_(planet)',
      },
      { title: 'Io', description: null, excerpt: null, thumbnail: null, url: 'https://en.wikipedia.org/wiki/Io' },
    ],
    licence: 'CC BY-SA 4.0',
    attribution: expect.stringMatching(/Wikipedia contributors.*creativecommons\.org\/licenses\/by-sa\/4\.0/),
    source: {
      name: 'Wikipedia (en)',
      url: `${world().origin}/wikipedia/en/w/rest.php/v1/search/page?q=jupiter&limit=5`,
      retrievedAt: NOW / 1000,
      licence: 'CC BY-SA 4.0',
    },
  });
});

test('another edition is another host', async () => {
  await search({ q: 'x', lang: 'ZH-min-nan', limit: '20' }).catch(() => undefined);
  expect(world().requests[0]).toBe('/wikipedia/zh-min-nan/w/rest.php/v1/search/page?q=x&limit=20');
});

test.each([
  [{}, 'q: required'],
  [{ q: '' }, 'q: 1 to 300'],
  [{ q: '   ' }, 'q: 1 to 300'],
  [{ q: 'x'.repeat(301) }, 'q: 1 to 300'],
  [{ q: 'x', limit: '0' }, 'limit: a whole number from 1 to 20'],
  [{ q: 'x', limit: '21' }, 'limit: a whole number from 1 to 20'],
  [{ q: 'x', lang: 'xx' }, 'lang: no language edition'],
  [{ q: 'x', lang: '' }, 'lang: no language edition'],
  [{ q: 'x', lang: 'aa' }, 'lang: no language edition'],
  [{ q: 'x', lang: 'en.evil.example/' }, 'lang: no language edition'],
])('%o is refused before any source is asked', async (query, message) => {
  const failure = await search(query as Record<string, string>).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(BadParameter);
  expect(String(failure)).toContain(message);
  expect(world().requests).toEqual([]);
});
