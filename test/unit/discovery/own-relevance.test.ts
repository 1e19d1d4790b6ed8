import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type Snapshot, search, searchParams, takeSnapshot } from '../../../src/discovery/search.ts';
import { ANSWERED, UNANSWERED } from './own-questions.ts';
import { NETWORK, ORIGIN, ownListings } from './world.ts';

const FIRST = 0.95;
const SILENT = 14;

let snapshot: Snapshot;
beforeAll(async () => {
  snapshot = await takeSnapshot({ own: ownListings(), market: [], catalogue: [] });
});
afterAll(() => snapshot.index.close());

const now = { network: NETWORK, catalogueReadAt: null, isOnline: () => true };
const ask = (q: string) =>
  search(snapshot, now, searchParams.parse({ q })).result.results.map(({ url }) =>
    url.replace(ORIGIN, '').replace(/^\/v1\/paid/, ''),
  );

describe('a search of our own routes alone', () => {
  test('is asked a question or more for each route, and others that nothing answers, each once', () => {
    const own = snapshot.listings.map(({ entry }) => new URL(entry.url).pathname.replace(/^\/v1\/paid/, ''));
    const questions = [...ANSWERED.map(([question]) => question), ...UNANSWERED];
    expect(questions.filter((question, at) => questions.indexOf(question) !== at)).toEqual([]);
    expect(UNANSWERED.length).toBeGreaterThan(SILENT);
    expect(new Set(ANSWERED.map(([, path]) => path))).toEqual(new Set(own));
  });

  test(`puts the right route first for at least ${FIRST * 100} % of the questions`, () => {
    const wrong = ANSWERED.filter(([question, path]) => ask(question)[0] !== path);
    const lines = wrong.map(([question, path]) => `  ${question}: ${ask(question)[0] ?? 'nothing'}, not ${path}`);
    process.stdout.write(`${ANSWERED.length - wrong.length} of ${ANSWERED.length} first\n${lines.join('\n')}\n`);
    expect(1 - wrong.length / ANSWERED.length).toBeGreaterThanOrEqual(FIRST);
  });

  test(`finds nothing for at least ${SILENT} of the questions that nothing answers`, () => {
    const answered = UNANSWERED.filter((question) => ask(question).length > 0);
    process.stdout.write(
      `answered in vain: ${answered.map((question) => `${question}: ${ask(question)}`).join('; ')}\n`,
    );
    expect(UNANSWERED.length - answered.length).toBeGreaterThanOrEqual(SILENT);
  });
});
