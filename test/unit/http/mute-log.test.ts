import { globSync, readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';

// Fastify is built without a logger, so a line logged through these would be lost silently.
it('no code logs through a request, a reply or the application', () => {
  const files = globSync('**/*.ts', { cwd: fileURLToPath(new URL('../../../src/', import.meta.url)) });
  expect(files.length).toBeGreaterThan(40);
  const speakers = files.filter((file) =>
    /\b(request|req|reply|app|fastify)\.log\.\w+\(/.test(
      readFileSync(new URL(`../../../src/${file}`, import.meta.url), 'utf8'),
    ),
  );
  expect(speakers).toEqual([]);
});
