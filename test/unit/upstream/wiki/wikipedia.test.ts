import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { UpstreamFailed } from '../../../../src/errors.ts';
import { WIKI_EDITIONS } from '../../../../src/upstream/wikipedia.ts';
import { json, type NamesWorld, NOW, serveFixtures, startNames } from '../../../support/upstream/names.ts';

let world: NamesWorld;
beforeEach(async () => {
  world = await startNames();
  serveFixtures(world);
});
afterEach(() => world.stop());

const wiki = () => world.sources.wiki;
const summaryPath = '/wikipedia/en/api/rest_v1/page/summary';
const article = (query: unknown) => {
  world.answers.set('/wikipedia/en/w/api.php', json(query));
  return wiki().article('en', 'Jupiter');
};

describe('search', () => {
  test('plain text out of marks and entities, addresses out of keys', async () => {
    expect(await wiki().search('en', 'jupiter & co', 5)).toEqual({
      url: `${world.origin}/wikipedia/en/w/rest.php/v1/search/page?q=jupiter+%26+co&limit=5`,
      retrievedAtMs: NOW,
      data: [
        {
          title: 'Jupiter (planet)',
          description: 'Fifth planet',
          excerpt: 'Jupiter is the fifth planet & the "largest" one',
          thumbnail: { url: 'https://upload.example.org/60px-J.jpg', width: 60, height: 50 },
          url: 'https://en.wikipedia.org/wiki/Jupiter_(planet)',
        },
        { title: 'Io', description: null, excerpt: null, thumbnail: null, url: 'https://en.wikipedia.org/wiki/Io' },
      ],
    });
  });

  test('never more than were asked for; none is an answer', async () => {
    expect((await wiki().search('en', 'jupiter', 1)).data).toHaveLength(1);
    world.answers.set('/wikipedia/en/w/rest.php/v1/search/page', json({ pages: [] }));
    expect((await wiki().search('en', 'nothing', 5)).data).toEqual([]);
  });

  test('the action API answers when REST does not', async () => {
    world.answers.delete('/wikipedia/en/w/rest.php/v1/search/page');
    const search = [{ ns: 0, title: 'AT&T: a "test"', snippet: 'about <span class="searchmatch">AT&amp;T</span>' }];
    world.answers.set('/wikipedia/en/w/api.php', json({ batchcomplete: true, query: { search } }));
    expect((await wiki().search('en', 'at&t', 3)).data).toEqual([
      {
        title: 'AT&T: a "test"',
        description: null,
        excerpt: 'about AT&T',
        thumbnail: null,
        url: 'https://en.wikipedia.org/wiki/AT%26T:_a_%22test%22',
      },
    ]);
    expect(world.requests.at(-1)).toContain('list=search&srsearch=at%26t&srlimit=3&srnamespace=0');
  });

  test('both failing is one failure', async () => {
    world.answers.clear();
    world.answers.set('/wikipedia/en/w/api.php', json({ error: { code: 'internal', info: 'x' } }));
    await expect(wiki().search('en', 'x', 5)).rejects.toBeInstanceOf(UpstreamFailed);
  });
});

describe('summary', () => {
  const PAGE = { type: 'standard', title: 'X', extract: 'Text.' };

  test('what the page says', async () => {
    expect((await wiki().summary('en', 'Jupiter'))?.data).toEqual({
      title: 'Jupiter',
      updatedAt: Date.parse('2026-11-01T02:03:04Z') / 1000,
      disambiguation: false,
      url: 'https://en.wikipedia.org/wiki/Jupiter',
      summary: 'Jupiter is the fifth planet.',
      description: 'Fifth planet',
      thumbnail: { url: 'https://upload.example.org/60px-J.jpg', width: 60, height: 50 },
      image: {
        url: 'https://upload.example.org/60px-J.jpg',
        width: 60,
        height: 50,
        originalUrl: 'https://upload.example.org/J.jpg',
      },
    });
  });

  test('blanks become underscores, everything else is encoded', async () => {
    await wiki().summary('en', 'AC/DC (a b)?');
    expect(world.requests).toEqual([`${summaryPath}/AC%2FDC_(a_b)%3F`]);
  });

  test('redirects to the normal title and to the page behind it are followed', async () => {
    world.answers.set(`${summaryPath}/jovian`, { status: 302, body: '', headers: { location: 'Jupiter' } });
    expect((await wiki().summary('en', 'jovian'))?.data.title).toBe('Jupiter');
  });

  test('a disambiguation page says so; an empty one has no summary', async () => {
    world.answers.set(`${summaryPath}/X`, json({ ...PAGE, type: 'disambiguation', extract: ' ' }));
    expect((await wiki().summary('en', 'X'))?.data).toMatchObject({
      disambiguation: true,
      summary: null,
      image: null,
      updatedAt: null,
    });
  });

  test('no page, or one that is no article, is none', async () => {
    expect(await wiki().summary('en', 'Nothing')).toBeNull();
    world.answers.set(`${summaryPath}/X`, json({ ...PAGE, namespace: { id: 2, text: 'User' } }));
    expect(await wiki().summary('en', 'X')).toBeNull();
  });
});

describe('article', () => {
  test('its text, without runs of empty lines', async () => {
    const found = await wiki().article('en', 'Jupiter');
    expect(found?.data).toEqual({
      title: 'Jupiter',
      updatedAt: Date.parse('2026-11-02T00:00:00Z') / 1000,
      disambiguation: false,
      description: 'Fifth planet',
      thumbnail: { url: 'https://upload.example.org/330px-J.jpg', width: 330, height: 300 },
      url: 'https://en.wikipedia.org/wiki/Jupiter',
      text: 'Jupiter is a planet.\n\nHistory\nLong.',
    });
    const query = new URL(`http://x${world.requests.at(-1)}`).searchParams;
    expect(Object.fromEntries(query)).toMatchObject({
      action: 'query',
      titles: 'Jupiter',
      redirects: '1',
      explaintext: '1',
      formatversion: '2',
    });
  });

  test('in the older format, pages by their id', async () => {
    const found = await article({ batchcomplete: '', query: { pages: { 7: { ns: 0, title: 'A b', extract: 'T' } } } });
    expect(found?.data).toMatchObject({ title: 'A b', text: 'T', url: 'https://en.wikipedia.org/wiki/A_b' });
  });

  test('a disambiguation page says so', async () => {
    const pages = [{ ns: 0, title: 'D', extract: 'T', pageprops: { disambiguation: '' } }];
    expect((await article({ query: { pages } }))?.data.disambiguation).toBe(true);
  });

  test.each([
    ['missing', { query: { pages: [{ ns: 0, title: 'X', missing: true }] } }],
    ['missing, in the older format', { query: { pages: { '-1': { ns: 0, title: 'X', missing: '' } } } }],
    ['invalid', { query: { pages: [{ title: 'X', invalid: true, invalidreason: 'bad' }] } }],
    ['of another project', { query: { interwiki: [{ title: 'fr:X', iw: 'fr' }] } }],
    ['no article', { query: { pages: [{ ns: 1, title: 'Talk:X', extract: 'T' }] } }],
  ])('%s is none', async (_what, body) => {
    expect(await article(body)).toBeNull();
  });

  test.each([
    ['an error with HTTP 200', { error: { code: 'maxlag', info: 'x' } }],
    ['no data', { batchcomplete: true }],
    ['a page without text', { query: { pages: [{ ns: 0, title: 'X' }] } }],
    ['another shape', { query: { pages: 'none' } }],
    ['a list', []],
  ])('%s is a failure', async (_what, body) => {
    await expect(article(body)).rejects.toBeInstanceOf(UpstreamFailed);
  });
});

test('the editions are subdomains, the large ones among them, the closed ones not', () => {
  expect(WIKI_EDITIONS.size).toBe(348);
  expect([...WIKI_EDITIONS].every((code) => /^[a-z]+(-[a-z]+)*$/.test(code))).toBe(true);
  expect(['en', 'de', 'ja', 'zh-yue', 'simple', 'be-tarask'].every((code) => WIKI_EDITIONS.has(code))).toBe(true);
  expect(['aa', 'www', 'commons', 'nb', ''].some((code) => WIKI_EDITIONS.has(code))).toBe(false);
});

describe('the meanings of a disambiguation page', () => {
  const meanings = (query: unknown) => {
    world.answers.set('/wikipedia/en/w/api.php', json(query));
    return wiki().meanings('en', 'Mercury');
  };

  test('are the articles that it links to, by title, without those that do not exist', async () => {
    const pages = [
      { pageid: 3, ns: 0, title: 'Mercury (planet)', description: 'First <i>planet</i>\u202e' },
      { pageid: 2, ns: 0, title: 'Mercury (element)' },
      { ns: 0, title: 'Mercury (nothing)', missing: true },
    ];
    expect(await meanings({ query: { pages } })).toEqual([
      { title: 'Mercury (element)', description: null, url: 'https://en.wikipedia.org/wiki/Mercury_(element)' },
      { title: 'Mercury (planet)', description: 'First planet', url: 'https://en.wikipedia.org/wiki/Mercury_(planet)' },
    ]);
    const query = new URL(`http://x${world.requests.at(-1)}`).searchParams;
    expect(Object.fromEntries(query)).toMatchObject({
      generator: 'links',
      gplnamespace: '0',
      gpllimit: '50',
      prop: 'description',
      titles: 'Mercury',
    });
  });

  test('are at most fifty, and none for a page without links', async () => {
    const pages = Array.from({ length: 60 }, (_, at) => ({ title: `M${at}` }));
    expect(await meanings({ query: { pages } })).toHaveLength(50);
    world.time.nowMs += 3_600_000;
    expect(await meanings({ batchcomplete: true })).toEqual([]);
  });

  test('are a failure when the question is refused', async () => {
    await expect(meanings({ error: { code: 'internal' } })).rejects.toBeInstanceOf(UpstreamFailed);
  });
});

test.each([
  ['with an odd address', { source: 'javascript:1', width: 1, height: 1 }],
  ['with a long address', { source: `https://a.example/${'x'.repeat(1000)}`, width: 1, height: 1 }],
  ['of another shape', 'x'],
])('a thumbnail %s is none, and the article is answered', async (_what, thumbnail) => {
  const found = await article({ query: { pages: [{ ns: 0, title: 'A', extract: 'T', thumbnail }] } });
  expect(found?.data).toMatchObject({ text: 'T', thumbnail: null });
});
