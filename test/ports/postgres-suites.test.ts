import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const TESTS = join(import.meta.dirname, '..');
/** What a suite starts PostgreSQL with, and what says whether there is one: with `REQUIRE_POSTGRES=1` its import fails where there is none. */
const [STARTS, ASKS] = [
  /\b(startPostgres|freshDatabase|workersDatabase)\(/,
  /\b(describePostgres(Steps)?|describeLedgers)\(/,
];

const isSilent = (text: string): boolean => STARTS.test(text) && !ASKS.test(text);

test('every suite that starts PostgreSQL says when there is none, so that none of them passes by not running', () => {
  const files = globSync('**/*.test.ts', { cwd: TESTS }).filter((file) => !file.endsWith('postgres-suites.test.ts'));
  const texts = files.map((file) => [file, readFileSync(join(TESTS, file), 'utf8')] as const);
  expect(texts.filter(([, text]) => STARTS.test(text)).length).toBeGreaterThan(10);
  expect(texts.filter(([, text]) => isSilent(text)).map(([file]) => file)).toEqual([]);
});

test('a suite with its own check is found', () => {
  expect(isSilent("describe.skipIf('missing' in found)('x', () => { startPostgres(); });")).toBe(true);
  expect(isSilent("describePostgres('x', () => { startPostgres(); });")).toBe(false);
});
