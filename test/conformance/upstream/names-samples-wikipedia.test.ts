import { expect, test } from 'vitest';
import { NotFound } from '../../../src/errors.ts';
import { WIKI_EDITIONS } from '../../../src/upstream/wikipedia.ts';
import { describeSamples, seconds } from '../../support/upstream/name-samples.ts';
import { json } from '../../support/upstream/names.ts';
import { ask } from '../../support/upstream/names-endpoints.ts';

describeSamples(
  'wiki/* over recorded answers',
  {
    folders: ['wikipedia'],
    notAskedFor: ['wikipedia/action-extracts-python.headers.json', 'wikipedia/action-langlinks-python.json'],
  },
  (samples) => {
    const REST_SEARCH = '/wikipedia/en/w/rest.php/v1/search/page';
    const ACTION = '/wikipedia/en/w/api.php';
    const SUMMARY = '/wikipedia/en/api/rest_v1/page/summary/';
    type Hits = { results: Record<'title' | 'excerpt' | 'description' | 'url' | 'thumbnail', string | null>[] };
    const search = () => ask<Hits>(samples.world, '/wiki/search', { q: 'x', limit: '20' });
    const summary = (title: string) => ask(samples.world, '/wiki/summary', { title });
    const article = (title: string) => ask<{ text: string }>(samples.world, '/wiki/article', { title });

    test('gives the titles, excerpts and descriptions of a REST search', async () => {
      samples.serve(REST_SEARCH, 'wikipedia/rest-search-page-Avatar.json');
      const { results } = await search();
      expect(results.map(({ url }) => url)).toEqual(
        ['Avatar', 'Avatar:_The_Way_of_Water', 'Avatar:_The_Last_Airbender'].map(
          (key) => `https://en.wikipedia.org/wiki/${key}`,
        ),
      );
      expect(results[0]?.excerpt).toContain('Indic text. Avatar (Sanskrit: अवतार, IAST: Avatāra');
      expect(results[1]?.description).toBe('2022 American film by James Cameron');
      expect(results.some(({ thumbnail }) => thumbnail !== null)).toBe(true);
    });

    test('understands a REST search by title and the page that the documentation shows', async () => {
      samples.serve(REST_SEARCH, 'wikipedia/rest-search-title-Paris.json');
      expect((await search()).results).toMatchObject([
        { title: 'Paris', description: 'Capital and largest city of France' },
      ]);
      samples.world.answers.set(
        REST_SEARCH,
        json({ pages: [samples.parsed('wikipedia/rest-search-result-object.json')] }),
      );
      samples.world.time.nowMs += 3_600_000;
      expect((await search()).results).toMatchObject([{ title: 'Jupiter' }]);
    });

    test.each([
      ['action-search-python.json', 3, 'Python (programming language)'],
      ['action-search-EUR-2026-10-05.json', 10, 'Euro'],
    ])('asks the action API when REST fails (%s)', async (file, length, title) => {
      samples.world.answers.set(REST_SEARCH, { status: 503, body: '' });
      samples.serve(ACTION, `wikipedia/${file}`);
      const { results } = await search();
      expect(results).toHaveLength(length);
      expect(results[0]?.title).toBe(title);
      for (const { excerpt } of results) expect(excerpt).not.toMatch(/[<>]|&\w+;/);
    });

    test.each([
      ['rest-summary-standard', { disambiguation: false, image: null, updatedAt: seconds('2026-03-28T18:24:07Z') }],
      [
        'rest-summary-disambiguation',
        {
          disambiguation: true,
          summary: 'Dart or DART may refer to:',
          image: null,
          description: 'Topics referred to by the same term',
        },
      ],
      [
        'rest-summary-with-image-2019',
        { title: 'Physics', image: { width: 320, height: 231 }, thumbnail: { width: 320, height: 231 } },
      ],
    ])('gives the summary of %s', async (file, expected) => {
      samples.serve(SUMMARY, `wikipedia/${file}.json`);
      const page = samples.parsed<{ extract: string; content_urls: { desktop: { page: string } } }>(
        `wikipedia/${file}.json`,
      );
      const reply = await summary('X');
      expect(reply).toMatchObject({ summary: page.extract, url: page.content_urls.desktop.page, ...expected });
    });

    test('answers 404 for a page that does not exist', async () => {
      samples.serve(SUMMARY, 'wikipedia/rest-error-404-summary.json', 'application/problem+json', 404);
      await expect(summary('X')).rejects.toBeInstanceOf(NotFound);
      samples.serve(ACTION, 'wikipedia/action-missing-page.json');
      await expect(article('X')).rejects.toBeInstanceOf(NotFound);
    });

    test('cuts a long article at the 20,000th character', async () => {
      samples.serve(ACTION, 'wikipedia/action-extracts-python.json');
      const reply = await article('Python');
      expect(reply).toMatchObject({
        title: 'Python (programming language)',
        url: 'https://en.wikipedia.org/wiki/Python_(programming_language)',
        characters: 20_000,
        truncated: true,
        nextOffset: 20_000,
        updatedAt: null,
      });
      expect(reply.text).toMatch(/^Python is a high-level/);
    });

    test('treats an article without its text as a failure', async () => {
      samples.serve(ACTION, 'wikipedia/action-info-python.json');
      await expect(article('Python')).rejects.toMatchObject({ status: 502 });
    });

    test('knows exactly the editions that are open', () => {
      expect([...WIKI_EDITIONS].sort()).toEqual(
        [...samples.parsed<{ open: string[] }>('wikipedia/open-wikipedia-subdomains.json').open].sort(),
      );
    });
  },
);
