import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Snapshot, search, searchParams, takeSnapshot } from '../../../src/discovery/search.ts';
import { KINDS, type KindQuestion, NOT_SOLD } from './kinds.ts';
import { listing, NETWORK, ORIGIN, ownListings } from './world.ts';

/** How many questions of a kind may have no right route among the first three. For the held ones it is what their only run showed. */
const MISSED = { open: 1, held: 3 };
/** The same for all questions that were held back: 4 of 34. Before the change that these lists are for, it was 8. */
const MISSED_HELD = 4;

const PREFIX = /^\/v1\/paid/;
const parts = ['open', 'held'] as const;
const now = { network: NETWORK, catalogueReadAt: null, isOnline: () => true };

const ask = (snapshot: Snapshot, q: string) =>
  search(snapshot, now, searchParams.parse({ q })).result.results.map(({ url }) =>
    url.replace(ORIGIN, '').replace(PREFIX, ''),
  );

let own: Snapshot;
beforeAll(async () => {
  own = await takeSnapshot({ own: ownListings(), market: [], catalogue: [] });
});
afterAll(() => own.index.close());

const isFound = ([question, ...paths]: KindQuestion) =>
  ask(own, question)
    .slice(0, 3)
    .some((path) => paths.includes(path));

describe('questions by kind', () => {
  test('are eleven or more of each kind in each half, none twice, and ask for what is on sale', () => {
    const onSale = ownListings().map(({ entry }) => entry.url.replace(ORIGIN, '').replace(PREFIX, ''));
    const all = Object.values(KINDS).flatMap(({ open, held }) => [...open, ...held]);
    for (const part of parts) {
      for (const [kind, questions] of Object.entries(KINDS)) expect(questions[part].length, kind).toBeGreaterThan(10);
      expect(NOT_SOLD[part]).toHaveLength(8);
    }
    const asked = [...all.map(([question]) => question), ...NOT_SOLD.open, ...NOT_SOLD.held];
    expect(asked).toHaveLength(68 + 16);
    expect(new Set(asked).size).toBe(asked.length);
    expect(all.flatMap(([, ...paths]) => paths).filter((path) => !onSale.includes(path))).toEqual([]);
  });

  describe.each(parts)('%s', (part) => {
    test.each(Object.keys(KINDS))(`%s: all but ${MISSED[part]} are among the first three`, (kind) => {
      const missed = KINDS[kind]?.[part].filter((question) => !isFound(question)) ?? [];
      expect(missed.length, missed.map(([question]) => question).join('; ')).toBeLessThanOrEqual(MISSED[part]);
    });

    test('finds nothing for what none of our routes answers', () => {
      expect(NOT_SOLD[part].filter((question) => ask(own, question).length > 0)).toEqual([]);
    });
  });

  test(`all but ${MISSED_HELD} of those that were held back are among the first three`, () => {
    const missed = Object.values(KINDS).flatMap(({ held }) => held.filter((question) => !isFound(question)));
    expect(missed.length, missed.map(([question]) => question).join('; ')).toBeLessThanOrEqual(MISSED_HELD);
  });

  test('the price of gas is asked of the fees first', () => {
    for (const question of ['gas price', 'what is the gas price', 'current gas prices', 'network fee']) {
      expect(ask(own, question)[0], question).toMatch(/^\/fees\//);
    }
  });

  test('a name that another seller’s text happens to hold does not replace what is asked of it', async () => {
    const others = ['Generate a React component from a prompt', 'Tours of Rome with Marie, tickets and times'];
    const catalogue = others.map((description, n) => listing({ url: `https://other.example/${n}`, description }));
    const snapshot = await takeSnapshot({ own: ownListings(), market: [], catalogue });
    expect(ask(snapshot, 'latest version of react')[0]).toBe('/packages/npm');
    expect(ask(snapshot, 'history of Rome')[0]).toMatch(/^\/wiki\//);
    expect(ask(snapshot, 'biography of Marie Antoinette')[0]).toMatch(/^\/wiki\//);
    expect(ask(snapshot, 'Marie tours tickets')[0]).toBe('https://other.example/1');
    snapshot.index.close();
  });
});
