import { existsSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import type { Equivalent } from '../../../scripts/lib/mutation-score.ts';

const LIST = 'test/mutation/equivalent.json';
const plain = (code: string): string => code.replace(/\s+/g, ' ').trim();

/** Whether the entry's code stands in the text of its file: anywhere, or from the entry's line on. */
function isThere({ source, line }: Equivalent, text: string): boolean {
  if (line === undefined) return plain(text).includes(plain(source));
  const lines = text.split('\n');
  return lines.some(
    (one, at) => plain(one) === plain(line) && plain(lines.slice(at).join('\n')).includes(plain(source)),
  );
}

test('each equivalent mutant names code that is there', () => {
  const entries = JSON.parse(readFileSync(LIST, 'utf8')) as Equivalent[];
  const gone = entries.filter((entry) => !existsSync(entry.file) || !isThere(entry, readFileSync(entry.file, 'utf8')));
  expect(gone).toEqual([]);
  expect(isThere({ ...(entries[0] as Equivalent), source: 'code that is not there' }, 'const a = 1;')).toBe(false);
});
