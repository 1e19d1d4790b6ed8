import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { BadParameter, NotFound } from '../../../src/errors.ts';
import { json } from '../../support/upstream/names.ts';
import { ask, useNames } from '../../support/upstream/names-endpoints.ts';

// However long a busy machine takes: no source is too late for an optional part.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const world = useNames();
type Article = { text: string; characters: number; truncated: boolean; nextOffset: number | null };
const article = (query: Record<string, string>) => ask<Article>(world(), '/wiki/article', query);
const holds = (extract: string) =>
  world().answers.set('/wikipedia/en/w/api.php', json({ query: { pages: [{ ns: 0, title: 'X', extract }] } }));

test('the text with licence and attribution', async () => {
  expect(await article({ title: 'jupiter' })).toMatchObject({
    title: 'Jupiter',
    text: 'Jupiter is a planet.\n\nHistory\nLong.',
    characters: 35,
    truncated: false,
    offset: 0,
    nextOffset: null,
    totalCharacters: 35,
    description: 'Fifth planet',
    thumbnail: { width: 330 },
    disambiguation: false,
    meanings: null,
    missing: [],
    licence: 'CC BY-SA 4.0',
    attribution: expect.stringContaining('by Wikipedia contributors'),
  });
});

test.each([
  [19_999, 19_999, false],
  [20_000, 20_000, false],
  [20_001, 20_000, true],
])('of %i characters, %i are returned; cut: %o', async (length, characters, truncated) => {
  holds('😀'.repeat(length));
  const reply = await article({ title: 'X' });
  expect(reply).toMatchObject({ characters, truncated });
  expect([...reply.text]).toHaveLength(characters);
  expect(reply.text.isWellFormed()).toBe(true);
});

test('a long article is read part by part, without a gap and from one request', async () => {
  // Characters of one and of two UTF-16 units.
  const whole = Array.from({ length: 45_001 }, (_, at) => (at % 3 === 0 ? '😀' : 'a')).join('');
  holds(whole);
  const parts: string[] = [];
  for (let offset: number | null = 0; offset !== null; ) {
    const reply: Article = await article({ title: 'X', offset: String(offset) });
    expect(reply).toMatchObject({ offset, totalCharacters: 45_001, truncated: reply.nextOffset !== null });
    parts.push(reply.text);
    offset = reply.nextOffset;
  }
  expect(parts.map((part) => [...part].length)).toEqual([20_000, 20_000, 5001]);
  expect(parts.join('')).toBe(whole);
  expect(world().requests).toHaveLength(1);
});

test.each(['5', '6', '5000000'])(
  'the offset %s, at which an article of five characters is over, is 400',
  async (offset) => {
    holds('abcde');
    const failure = await article({ title: 'X', offset }).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(BadParameter);
    expect(String(failure)).toContain('offset: the article has 5 characters');
    expect(await article({ title: 'X', offset: '4' })).toMatchObject({ text: 'e', nextOffset: null });
  },
);

test.each(['-1', '1.5', '5000001', ''])('the offset %o is refused before any source is asked', async (offset) => {
  await expect(article({ title: 'X', offset })).rejects.toBeInstanceOf(BadParameter);
  expect(world().requests).toEqual([]);
});

test('no such article, and one without text, are 404', async () => {
  holds('  \n ');
  await expect(article({ title: 'X' })).rejects.toBeInstanceOf(NotFound);
  world().answers.set('/wikipedia/en/w/api.php', json({ query: { pages: [{ ns: 0, title: 'X', missing: true }] } }));
  await expect(article({ title: 'X' })).rejects.toBeInstanceOf(NotFound);
});

test('titles and editions are checked first', async () => {
  await expect(article({})).rejects.toThrow("title: required: an article's title");
  await expect(article({ title: 'A|B' })).rejects.toBeInstanceOf(BadParameter);
  await expect(article({ title: 'A', lang: 'klingon' })).rejects.toBeInstanceOf(BadParameter);
  expect(world().requests).toEqual([]);
});
