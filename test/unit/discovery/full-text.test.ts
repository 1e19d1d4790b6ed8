import { afterEach, describe, expect, test } from 'vitest';
import { buildDiscoveryIndex, type DiscoveryIndex, type IndexedDocument } from '../../../src/discovery/full-text.ts';

const opened: DiscoveryIndex[] = [];
afterEach(() => {
  for (const index of opened.splice(0)) index.close();
});

const EMPTY: IndexedDocument = { name: '', label: '', keywords: '', description: '', params: '', place: '' };
const filler = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ ...EMPTY, description: `filler number${n} of many` }));

async function build(documents: readonly Partial<IndexedDocument>[]): Promise<DiscoveryIndex> {
  const index = await buildDiscoveryIndex([...documents.map((document) => ({ ...EMPTY, ...document })), ...filler(30)]);
  opened.push(index);
  return index;
}
const ids = (index: DiscoveryIndex, phrase: string, prefix?: boolean) => [...index.match(phrase, prefix).ids];

describe('the full-text index', () => {
  test('finds words by their stems, without accents and letter case', async () => {
    const index = await build([{ description: 'Every Café forecasts' }]);
    for (const word of ['café', 'CAFE', 'cafes', 'forecast', 'forecasting'])
      expect([word, ids(index, word)]).toEqual([word, [0]]);
    expect(ids(index, 'caf')).toEqual([]);
  });

  test('a phrase is its words in this order', async () => {
    const index = await build([{ description: 'text to speech' }, { description: 'speech to text' }]);
    expect(ids(index, 'speech to text')).toEqual([1]);
    expect(ids(index, 'speech')).toEqual([0, 1]);
  });

  test('a prefix is the beginning of its last word', async () => {
    const index = await build([{ label: 'Volcano map' }]);
    expect(ids(index, 'volc', true)).toEqual([0]);
    expect(ids(index, 'volc')).toEqual([]);
    expect(ids(index, 'volcano ma', true)).toEqual([0]);
  });

  test('a word counts more in the label than in the description, and there more than in a parameter', async () => {
    const { ids: found, scores } = (
      await build([{ params: 'zebra' }, { description: 'zebra' }, { label: 'zebra' }])
    ).match('zebra');
    expect([...found].sort((a, b) => (scores[b] ?? 0) - (scores[a] ?? 0))).toEqual([2, 1, 0]);
  });

  test('a word that most documents hold finds them all, with a score near zero', async () => {
    const index = await build([{ description: 'filler zebra' }]);
    const [common, rare] = [index.match('filler'), index.match('zebra')];
    expect(common.ids).toHaveLength(31);
    expect(new Set(common.scores).size).toBe(1);
    expect(common.scores[0]).toBeLessThan((rare.scores[0] ?? 0) / 100);
    expect(common.scores[0]).toBeGreaterThan(0);
  });

  test('a repeated query gives the same result', async () => {
    const index = await build([{ label: 'zebra' }, { description: 'a zebra' }]);
    const [first, again] = [index.match('zebra'), index.match('zebra')];
    expect(again).toEqual(first);
    expect(index.match('zebra', true)).toEqual(first);
  });

  test.each([
    ...[
      '"',
      '""',
      '*',
      'AND',
      'NOT',
      'NEAR(zebra)',
      '^',
      'name:',
      'name : x',
      '{a}',
      '-',
      '(',
      "'",
      ';',
      '\u0000',
      '\ud800',
      '',
      ' ',
      'zebra" OR "x',
    ],
  ])('%j is not read as syntax', async (phrase) => {
    const index = await build([{ label: 'stripes' }]);
    for (const prefix of [false, true]) expect(() => index.match(phrase, prefix)).not.toThrow();
  });

  test('marks, digits of other scripts and compatibility forms are words like others', async () => {
    const index = await build([{ label: 'हिन्दी' }, { label: '東京' }, { label: '𝟙st ﬁsh' }]);
    for (const [n, word] of ['हिन्दी', '東京', 'ﬁsh'].entries()) {
      expect(() => index.match(word, true)).not.toThrow();
      if (n < 2) expect(ids(index, word)).toEqual([n]);
    }
  });

  test('of no documents finds nothing', async () => {
    const index = await buildDiscoveryIndex([]);
    opened.push(index);
    expect([index.size, ids(index, 'zebra')]).toEqual([0, []]);
  });

  test('the event loop runs other tasks while the index is built', async () => {
    let turns = 0;
    let built = false;
    const count = () => {
      turns += 1;
      if (!built) setImmediate(count);
    };
    setImmediate(count);
    opened.push(await buildDiscoveryIndex(filler(200)));
    built = true;
    expect(turns).toBeGreaterThanOrEqual(5);
  });
});
