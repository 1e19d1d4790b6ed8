import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { type Examples, openExamples, ROOT } from '../support/service/shown-code.ts';

const readme = readFileSync(join(ROOT, 'README.md'), 'utf8');

let examples: Examples;
beforeAll(async () => {
  examples = await openExamples();
});
afterAll(() => examples?.stop());

test('the README’s ten lines buy a call, and the hash they print is its transfer', async () => {
  const [, code = ''] = /```ts\n([\s\S]*?)```/.exec(readme) ?? [];
  expect(code.trim().split('\n').length).toBeLessThanOrEqual(10);
  await examples.expectPurchase(code, { ORIGIN: examples.service.origin });
});

test('the README’s free URLs answer', async () => {
  const urls = [...readme.matchAll(/curl '?http:\/\/127\.0\.0\.1:4021(\/[^\s']*)/g)].map(([, path]) => String(path));
  expect(urls.length).toBeGreaterThanOrEqual(4);
  for (const path of urls) expect([path, (await examples.service.get(path)).status]).toEqual([path, 200]);
});
