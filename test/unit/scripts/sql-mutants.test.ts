import { expect, test } from 'vitest';
import { sqlMutants } from '../../../scripts/lib/sql-mutants.ts';

const changed = (text: string): string[] => sqlMutants(text).map((one) => one.text);

test.each([
  ['a comparison', 'SELECT a FROM t WHERE b < 1', 'SELECT a FROM t WHERE b <= 1'],
  ['a condition', 'SELECT a FROM t WHERE b = @b AND c > 0 LIMIT 1', 'SELECT a FROM t WHERE b = @b AND TRUE LIMIT 1'],
  [
    'a condition in brackets',
    'SELECT a FROM t WHERE (b = @b OR c > 0) AND d = 1',
    'SELECT a FROM t WHERE TRUE AND d = 1',
  ],
  ['of two conditions both or one', 'SELECT a FROM t WHERE b AND c', 'SELECT a FROM t WHERE b OR c'],
  ['an assignment', 'UPDATE t SET a = @a, b = b + 1 WHERE id = @id', 'UPDATE t SET a = a, b = b + 1 WHERE id = @id'],
  ['a sum', 'UPDATE t SET a = a + @a', 'UPDATE t SET a = a - @a'],
  ['a choice', 'SELECT CASE WHEN a > b THEN a ELSE b END FROM t', 'SELECT CASE WHEN TRUE THEN a ELSE b END FROM t'],
  ['what exists', 'SELECT 1 WHERE NOT EXISTS (SELECT 1 FROM t)', 'SELECT 1 WHERE  EXISTS (SELECT 1 FROM t)'],
  ['what is null', 'SELECT a FROM t WHERE b IS NOT NULL', 'SELECT a FROM t WHERE b IS NULL'],
  ['one of a list', "SELECT a FROM t WHERE b IN ('x', 'y')", "SELECT a FROM t WHERE b IN ('', 'y')"],
  ['an order', 'SELECT a FROM t ORDER BY b, a LIMIT @limit', 'SELECT a FROM t ORDER BY b DESC, a LIMIT @limit'],
  ['a limit', 'SELECT a FROM t ORDER BY b LIMIT @limit', 'SELECT a FROM t ORDER BY b LIMIT -1'],
  ['what stands in for null', 'SELECT coalesce(max(a), 0) FROM t', 'SELECT max ( a ) FROM t'],
  [
    'the row of a follower',
    'DELETE FROM t USING done WHERE id = done.id',
    'DELETE FROM t USING done WHERE id <> done.id',
  ],
  ['the guard of a follower', 'DELETE FROM t USING done WHERE id = done.id', 'DELETE FROM t USING done WHERE TRUE'],
])('changes %s', (_what, text, expected) => {
  expect(changed(text)).toContain(expected);
});

test('changes one thing at a time, and nothing of a comment or a value', () => {
  const text = "SELECT a FROM t WHERE b = 'x < 1 AND y' -- c < 2";
  expect(changed(text).toSorted()).toEqual([
    'SELECT a FROM t WHERE TRUE -- c < 2',
    "SELECT a FROM t WHERE b <> 'x < 1 AND y' -- c < 2",
  ]);
});

test('names each change by the code around it', () => {
  const [first] = sqlMutants('SELECT a FROM t WHERE b < c');
  expect(first).toMatchObject({ where: 'SELECT a FROM t WHERE [b < c]', replacement: 'TRUE' });
});
