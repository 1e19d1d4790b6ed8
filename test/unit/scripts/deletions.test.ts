import { existsSync, readFileSync } from 'node:fs';
import { describe, expect, test } from 'vitest';
import { PARTS } from '../../../scripts/lib/deletions/parts.ts';

const textOf = (path: string) => readFileSync(path, 'utf8');

// `npm run trial:deletions` deletes each part from a copy. It takes minutes, so this looks only whether the table fits.
describe.each(PARTS)('the table of what goes with $name', ({ files, tests, edits, testEdits, testCases }) => {
  test('names files and folders that are there', () => {
    expect([...files, ...tests].filter((path) => !existsSync(path))).toEqual([]);
  });

  test('quotes each line once that the source has', () => {
    const times = edits.map(([path, text]) => [path, text, textOf(path).split(text).length - 1]);
    expect(times.filter(([, , count]) => count !== 1)).toEqual([]);
  });

  test('quotes lines and titles that the tests have', () => {
    const quoted = [...testEdits.map(([path, text]) => [path, text] as const), ...testCases];
    expect(quoted.filter(([path, text]) => !textOf(path).includes(text))).toEqual([]);
  });
});
