import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { search } from '../../../src/discovery/search.ts';
import { searchParams } from '../../../src/discovery/search-params.ts';
import { type Snapshot, takeSnapshot } from '../../../src/discovery/snapshot.ts';
import { KINDS, type KindQuestion, NOT_SOLD } from './kinds.ts';
import { LIGHTNING, listing, NETWORK, ORIGIN, ownListings } from './world.ts';

/** Of the twelve questions of a kind, how many have their route among the first three. The held ones have what their only run showed. */
const LEAST = { open: 11, held: 9 };
/** Of the 36 questions that were held back. Before the change that these lists are for, it was 28. */
const LEAST_HELD = 32;

const PREFIX = /^\/v1\/(paid|lightning)/;
const parts = ['open', 'held'] as const;
const now = { network: NETWORK, catalogueReadAt: null, isOnline: () => true };

const ask = (snapshot: Snapshot, q: string) =>
  search(snapshot, now, searchParams.parse({ q })).result.results.map(({ url }) =>
    url.replace(ORIGIN, '').replace(PREFIX, ''),
  );

let own: Snapshot;
beforeAll(async () => {
  own = await takeSnapshot({ own: ownListings(LIGHTNING), market: [], catalogue: [] });
});
afterAll(() => own.index.close());

const isFound = ([question, ...paths]: KindQuestion) =>
  ask(own, question)
    .slice(0, 3)
    .some((path) => paths.includes(path));

describe('questions by kind', () => {
  test('are twelve of each kind in each half, none twice, and ask for what is on sale', () => {
    const onSale = ownListings(LIGHTNING).map(({ entry }) => entry.url.replace(ORIGIN, '').replace(PREFIX, ''));
    const all = Object.values(KINDS).flatMap(({ open, held }) => [...open, ...held]);
    for (const part of parts) {
      for (const [kind, questions] of Object.entries(KINDS)) expect(questions[part], kind).toHaveLength(12);
      expect(NOT_SOLD[part]).toHaveLength(8);
    }
    expect(new Set([...all.map(([question]) => question), ...NOT_SOLD.open, ...NOT_SOLD.held]).size).toBe(72 + 16);
    expect(all.flatMap(([, ...paths]) => paths).filter((path) => !onSale.includes(path))).toEqual([]);
  });

  describe.each(parts)('%s', (part) => {
    test.each(Object.keys(KINDS))(`%s: at least ${LEAST[part]} of twelve are among the first three`, (kind) => {
      const missed = KINDS[kind]?.[part].filter((question) => !isFound(question)) ?? [];
      expect(12 - missed.length, missed.map(([question]) => question).join('; ')).toBeGreaterThanOrEqual(LEAST[part]);
    });

    test('finds nothing for what none of our routes answers', () => {
      expect(NOT_SOLD[part].filter((question) => ask(own, question).length > 0)).toEqual([]);
    });
  });

  test(`at least ${LEAST_HELD} of the 36 that were held back are among the first three`, () => {
    const found = Object.values(KINDS).flatMap(({ held }) => held.filter(isFound));
    expect(found.length).toBeGreaterThanOrEqual(LEAST_HELD);
  });

  test('the price of gas is asked of the fees first', () => {
    for (const question of ['gas price', 'what is the gas price', 'current gas prices', 'network fee']) {
      expect(ask(own, question)[0], question).toMatch(/^\/fees\//);
    }
  });

  test('a name that another seller’s text happens to hold does not replace what is asked of it', async () => {
    const others = ['Generate a React component from a prompt', 'Tours of Rome with Marie, tickets and times'];
    const catalogue = others.map((description, n) => listing({ url: `https://other.example/${n}`, description }));
    const snapshot = await takeSnapshot({ own: ownListings(LIGHTNING), market: [], catalogue });
    expect(ask(snapshot, 'latest version of react')[0]).toBe('/packages/npm');
    expect(ask(snapshot, 'history of Rome')[0]).toMatch(/^\/wiki\//);
    expect(ask(snapshot, 'biography of Marie Antoinette')[0]).toMatch(/^\/wiki\//);
    expect(ask(snapshot, 'Marie tours tickets')[0]).toBe('https://other.example/1');
    snapshot.index.close();
  });
});
