import { expect, test } from 'vitest';
import { BadParameter, NotFound } from '../../../src/errors.ts';
import { json } from '../../support/upstream/names.ts';
import { ask, useNames } from '../../support/upstream/names-endpoints.ts';

const world = useNames();
type Article = { text: string; characters: number; truncated: boolean };
const article = (query: Record<string, string>) => ask<Article>(world(), '/wiki/article', query);
const holds = (extract: string) =>
  world().answers.set('/wikipedia/en/w/api.php', json({ query: { pages: [{ ns: 0, title: 'X', extract }] } }));

test('the text with licence and attribution', async () => {
  expect(await article({ title: 'jupiter' })).toMatchObject({
    title: 'Jupiter',
    text: 'Jupiter is a planet.\n\nHistory\nLong.',
    characters: 35,
    truncated: false,
    disambiguation: false,
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
