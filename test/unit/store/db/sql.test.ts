import { describe, expect, test } from 'vitest';
import { allTexts, type Dialect, kept, render, sql } from '../../../../src/store/db/sql.ts';

/** As PostgreSQL writes it: numbered, typed, `done` is a table. */
const NUMBERED: Dialect = {
  parameter: (at, type) => `$${at}${type ? `::${type}` : ''}`,
  hasDone: true,
  isNumbered: true,
  rows: (columns, parameters) => `rows(${columns.join(' ')} = ${parameters.join(' ')})`,
  words: { HERE: 'at @place::text', BOTH: '@place::text or @other' },
};
/** As SQLite writes it. */
const PLAIN: Dialect = {
  parameter: () => '?',
  hasDone: false,
  isNumbered: false,
  rows: (columns, parameters) => `rows(${columns.join(' ')} = ${parameters.join(' ')})`,
  words: { HERE: 'TRUE', BOTH: '@place::text or @other' },
};

const names = (of: ReturnType<typeof render>): string[] => of.slots.map(({ name }) => name);

describe('a text', () => {
  test('has a parameter once where names are numbered, and as often as it stands elsewhere', () => {
    const text = 'SELECT @a::numeric + @b WHERE @a::numeric > 0';
    const numbered = render(text, NUMBERED, { a: 1, b: 2 });
    expect([numbered.text, names(numbered)]).toEqual(['SELECT $1::numeric + $2 WHERE $1::numeric > 0', ['a', 'b']]);
    const plain = render(text, PLAIN, { a: 1, b: 2 });
    expect([plain.text, names(plain)]).toEqual(['SELECT ? + ? WHERE ? > 0', ['a', 'b', 'a']]);
  });

  test.each([
    [[], 'x IN (SELECT NULL WHERE 1 = 0)', 'x IN (SELECT NULL WHERE 1 = 0)'],
    [['one'], 'x IN ($1)', 'x IN (?)'],
    [['one', 'two', 'three'], 'x IN ($1, $2, $3)', 'x IN (?, ?, ?)'],
  ])('takes the list %j', (states, numbered, plain) => {
    expect(render('x IN @states', NUMBERED, { states }).text).toBe(numbered);
    const made = render('x IN @states', PLAIN, { states });
    expect([made.text, made.slots.map(({ at }) => at)]).toEqual([plain, states.map((_, at) => at)]);
  });

  test('takes rows, each column a parameter', () => {
    const { text, slots } = render('SELECT 1 FROM @given::(network text, hash bytea)', NUMBERED, { given: [] });
    expect(text).toBe('SELECT 1 FROM rows(network hash = $1::text[] $2::bytea[]) AS given');
    expect(slots).toEqual([
      { name: 'given', column: 'network' },
      { name: 'given', column: 'hash' },
    ]);
  });

  test('of a follower reads `done` as a table, or a column of one row', () => {
    const follower = 'UPDATE a SET b = done.b FROM done WHERE a.id = done."id" AND c = @c';
    expect(render(follower, NUMBERED, { c: 1 }).text).toBe(follower.replace('@c', '$1'));
    const { text, slots } = render(follower, PLAIN, { c: 1 });
    expect(text).toBe('UPDATE a SET b = ? WHERE a.id = ? AND c = ?');
    expect(slots.map(({ done }) => done)).toEqual(['b', 'id', undefined]);
  });

  test('takes the parameters of a word by their names', () => {
    for (const [dialect, text] of [
      [NUMBERED, 'WHERE $1::text or $2'],
      [PLAIN, 'WHERE ? or ?'],
    ] as const) {
      const made = render('WHERE {BOTH}', dialect, { place: 'x', other: 1 });
      expect([made.text, made.slots]).toEqual([text, [{ name: 'place' }, { name: 'other' }]]);
    }
  });

  test('says a word as its database does, and no database says an unknown one', () => {
    expect(render('WHERE {HERE}', NUMBERED, { place: 'x' }).text).toBe('WHERE at $1::text');
    expect(render('WHERE {HERE}', PLAIN, {}).text).toBe('WHERE TRUE');
    expect(() => render('WHERE {THERE}', PLAIN, {})).toThrow('no database says THERE');
  });

  test('is called with its values, and keeps what follows from it', () => {
    const one = sql<{ id: string }, { id: string }>('SELECT @id', ['DELETE FROM a'], ['id']);
    expect(one({ id: 'x' })).toEqual({ sql: one, values: { id: 'x' } });
    expect([one.text, one.followers, one.given]).toEqual(['SELECT @id', ['DELETE FROM a'], ['id']]);
  });

  test('is one statement wherever it is made, and another with other followers or columns', () => {
    const one = sql<object, { a: 1; b: 2 }>('SELECT 1');
    expect(sql('SELECT 1')).toBe(one);
    const others = [
      sql('SELECT 1', ['DELETE FROM a']),
      sql('SELECT 1', ['DELETE FROM b']),
      sql('SELECT 1', [], []),
      sql<object, { a: 1; b: 2 }>('SELECT 1', [], ['a']),
      sql<object, { a: 1; b: 2 }>('SELECT 1', [], ['a', 'b']),
    ];
    expect(new Set([one, ...others]).size).toBe(6);
    expect(allTexts().filter((text) => text === one || others.includes(text as typeof one))).toHaveLength(6);
  });

  test('is made once by a driver, and once more for each length of its lists, those of its followers too', () => {
    let times = 0;
    const find = kept(() => ++times);
    const lists = sql<{ a: readonly number[]; b: readonly number[] }>('SELECT x IN @a', [
      'DELETE FROM y WHERE z IN @b',
    ]);
    const [one, other] = [sql<{ id: number }>('SELECT @id'), sql<{ id: number }>('SELECT 2 * @id')];
    expect([1, 2].map((id) => find(one({ id })))).toEqual([1, 1]);
    expect([1, 2].map((id) => find(other({ id })))).toEqual([2, 2]);
    const lengths: [number[], number[]][] = [
      [[1], []],
      [[2], []],
      [[1], [1]],
      [[], [1]],
      [[], [2]],
      [[3], []],
    ];
    expect(lengths.map(([a, b]) => find(lists({ a, b })))).toEqual([3, 3, 4, 5, 5, 3]);
  });
});
