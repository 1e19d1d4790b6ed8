import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Snapshot, search, searchParams, takeSnapshot } from '../../../src/discovery/search.ts';
import { QUESTIONS } from './questions.ts';
import { background, NETWORK, ORIGIN, ownListings } from './world.ts';

const FIRST = 0.9;
const IN_THREE = 0.98;

let snapshot: Snapshot;
beforeAll(async () => {
  snapshot = await takeSnapshot({ own: ownListings(), ...background() });
});
afterAll(() => snapshot.index.close());

const now = { network: NETWORK, catalogueReadAt: null, isOnline: () => true };

/** Our results by path, others by host and path. */
const ask = (q: string) =>
  search(snapshot, now, searchParams.parse({ q })).result.results.map(({ url }) =>
    url.replace(ORIGIN, '').replace('https://', ''),
  );

describe('people’s questions', () => {
  test('are enough, each asks for something on sale, and all of our routes are asked for', () => {
    const onSale = snapshot.listings.map(({ entry }) => entry.url.replace(ORIGIN, '').replace('https://', ''));
    const expected = QUESTIONS.map(([, entry]) => entry);
    expect(QUESTIONS.length).toBeGreaterThanOrEqual(60);
    expect(new Set(QUESTIONS.map(([question]) => question)).size).toBe(QUESTIONS.length);
    expect(expected.filter((entry) => !onSale.includes(entry))).toEqual([]);
    expect(onSale.filter((entry) => entry.startsWith('/') && !expected.includes(entry))).toEqual([]);
    expect(onSale.length).toBeGreaterThan(250);
  });

  test('do not repeat the descriptions', () => {
    const descriptions = snapshot.listings.map(({ entry }) => `${entry.label} ${entry.description}`.toLowerCase());
    const copied = QUESTIONS.filter(([question]) => descriptions.some((text) => text.includes(question.toLowerCase())));
    expect(copied.filter(([question]) => question.split(' ').length > 2)).toEqual([]);
  });

  test(`put the right entry first in ${FIRST * 100} %, and among the first three in ${IN_THREE * 100} %`, () => {
    const places = QUESTIONS.map(([question, entry]) => ({ question, entry, place: ask(question).indexOf(entry) }));
    const share = (count: number) => count / places.length;
    const first = share(places.filter(({ place }) => place === 0).length);
    const inThree = share(places.filter(({ place }) => place >= 0 && place < 3).length);
    const missed = places
      .filter(({ place }) => place !== 0)
      .map(({ question, place }) => `  ${place + 1}. ${question}`);
    process.stdout.write(
      `${places.length} questions: ${(first * 100).toFixed(1)} % first, ${(inThree * 100).toFixed(1)} % in the first three\n${missed.join('\n')}\n`,
    );
    expect(first).toBeGreaterThanOrEqual(FIRST);
    expect(inThree).toBeGreaterThanOrEqual(IN_THREE);
  });

  test.each(['xylophone tuning', 'qwzrk', 'тест', '🦆', '!!!'])(
    '%s: no entry sells that, and nothing is found',
    (question) => {
      expect(ask(question)).toEqual([]);
    },
  );
});
