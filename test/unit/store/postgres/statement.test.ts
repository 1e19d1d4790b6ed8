import { expect, test } from 'vitest';
import { fixed, statement } from '../../../../src/store/db/connections.ts';

test('names become numbers in the order of their first use, and one name one parameter', () => {
  const made = statement<{ id: string; now: number }>(
    'UPDATE t SET a = @now::bigint WHERE id = @id AND b < @now::bigint',
  );
  expect(made({ id: 'x', now: 5 })).toMatchObject({
    text: 'UPDATE t SET a = $1::bigint WHERE id = $2 AND b < $1::bigint',
    values: [5, 'x'],
  });
});

test('a value without a name in the text is not sent', () => {
  expect(statement<object>('SELECT @a')({ a: null, preimage: 'secret' }).values).toEqual([null]);
});

test('a text has the same name in every process, and no other text has it', () => {
  const name = (text: string) => statement<object>(text)({}).name;
  expect(name('SELECT @a')).toBe(name('SELECT @b'));
  expect(name('SELECT @a')).not.toBe(name('SELECT @a, 1'));
  expect(name('SELECT @a')).toMatch(/^[0-9a-f]{32}$/);
  expect(fixed('COMMIT')).toMatchObject({ text: 'COMMIT', values: [] });
});
