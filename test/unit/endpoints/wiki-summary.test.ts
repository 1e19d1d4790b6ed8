import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { BadParameter, NotFound } from '../../../src/errors.ts';
import { json } from '../../support/upstream/names.ts';
import { ask, useNames } from '../../support/upstream/names-endpoints.ts';

// However long a busy machine takes: no source is too late for an optional part.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const world = useNames();
const summary = (query: Record<string, string>) => ask(world(), '/wiki/summary', query);

test('the summary with licence and attribution', async () => {
  expect(await summary({ title: 'Jupiter' })).toMatchObject({
    title: 'Jupiter',
    lang: 'en',
    summary: 'Jupiter is the fifth planet.',
    image: { width: 60 },
    description: 'Fifth planet',
    thumbnail: { url: 'https://upload.example.org/60px-J.jpg', width: 60, height: 50 },
    disambiguation: false,
    meanings: null,
    missing: [],
    url: 'https://en.wikipedia.org/wiki/Jupiter',
    licence: 'CC BY-SA 4.0',
    attribution: expect.stringMatching(
      /^"Jupiter" by Wikipedia contributors, https:\/\/en\.wikipedia\.org\/wiki\/Jupiter, CC/,
    ),
    source: { name: 'Wikipedia (en)', licence: 'CC BY-SA 4.0' },
  });
});

test('of a disambiguation page the articles that it leads to, in one more request', async () => {
  world().answers.set(
    '/wikipedia/en/w/api.php',
    json({ query: { pages: [{ title: 'Mercury (planet)', description: 'First planet' }] } }),
  );
  expect(await summary({ title: 'Mercury' })).toMatchObject({
    disambiguation: true,
    meanings: [
      { title: 'Mercury (planet)', description: 'First planet', url: 'https://en.wikipedia.org/wiki/Mercury_(planet)' },
    ],
    missing: [],
  });
  expect(world().requests).toHaveLength(2);
});

test('the summary of any other page costs one request', async () => {
  await summary({ title: 'Jupiter' });
  expect(world().requests).toHaveLength(1);
});

test('a disambiguation page is answered when its links cannot be read, with the reason', async () => {
  world().answers.delete('/wikipedia/en/w/api.php');
  expect(await summary({ title: 'Mercury' })).toMatchObject({
    summary: 'Mercury may refer to:',
    disambiguation: true,
    meanings: null,
    missing: [{ field: 'meanings', reason: expect.stringMatching(/^Wikipedia: /) }],
  });
});

test('no such article is 404, naming edition and title', async () => {
  const failure = await summary({ title: 'Nobody knows', lang: 'de' }).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(NotFound);
  expect(String(failure)).toContain('de.wikipedia.org has no article "Nobody knows"');
});

describe('titles', () => {
  test.each([
    ['  Some__Title ', 'Some_Title'],
    ['AC/DC', 'AC%2FDC'],
    ['C++', 'C%2B%2B'],
    ['100% cotton', '100%25_cotton'],
    ['...And Justice for All', '...And_Justice_for_All'],
    ['S/Z/.x', 'S%2FZ%2F.x'],
    ['Ünïcödé 日本 😀', `${encodeURIComponent('Ünïcödé_日本_😀')}`],
    [`${'é'.repeat(127)}`, encodeURIComponent('é'.repeat(127))],
  ])('%o is sent as %s', async (title, path) => {
    await summary({ title }).catch(() => undefined);
    expect(world().requests).toEqual([`/wikipedia/en/api/rest_v1/page/summary/${path}`]);
  });

  test.each([
    '',
    '  _ ',
    '.',
    '..',
    './a',
    '../a',
    'a/../b',
    'a/./b',
    'a/..',
    'a/.',
    ':Category:X',
    'A#B',
    'A<B',
    'A>B',
    'A[B]',
    'A|B',
    '{{A}}',
    'A\u0000B',
    'A\u007fB',
    'A\u{FFFD}B',
    'A%2FB',
    '%2e%2e',
    'A~~~~',
    'x'.repeat(256),
    'é'.repeat(128),
  ])('%o is refused before any source is asked', async (title) => {
    await expect(summary({ title })).rejects.toBeInstanceOf(BadParameter);
    expect(world().requests).toEqual([]);
  });
});
