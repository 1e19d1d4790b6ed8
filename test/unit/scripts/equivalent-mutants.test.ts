import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { type Equivalent, plain } from '../../../scripts/lib/mutation-score.ts';

const LIST = 'test/mutation/equivalent.json';

/** Whether the entry's code stands in the text of its file: anywhere, or beginning in the entry's line. */
function isThere({ source, line }: Equivalent, text: string): boolean {
  if (line === undefined) return plain(text).includes(plain(source));
  const lines = text.split('\n');
  return lines.some((one, at) => {
    if (plain(one) !== plain(line)) return false;
    const from = plain(lines.slice(at).join('\n')).indexOf(plain(source));
    return from >= 0 && from < plain(line).length;
  });
}

test('each equivalent mutant names code that is there', () => {
  const entries = JSON.parse(readFileSync(LIST, 'utf8')) as Equivalent[];
  const gone = entries.filter((entry) => !existsSync(entry.file) || !isThere(entry, readFileSync(entry.file, 'utf8')));
  expect(gone).toEqual([]);
});

test.each([
  ['code that is not there', { source: 'b' }, false],
  ['code that is there', { source: 'a  = 1' }, true],
  ['a line that is not there', { source: '1', line: 'const b = 1;' }, false],
  ['code that begins in a later line', { source: '2', line: 'const a = 1;' }, false],
  ['code that begins in its line', { source: '1; const c', line: 'const a = 1;' }, true],
])('%s', (_what, entry, expected) => {
  const equivalent = { file: 'a.ts', replacement: '', reason: '', ...entry };
  expect(isThere(equivalent, 'const a = 1;\nconst c = 2;')).toBe(expected);
});
