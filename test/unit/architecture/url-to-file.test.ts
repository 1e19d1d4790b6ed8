import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { catalogue } from '../../../src/catalogue/catalogue.ts';
import { readText } from '../../support/documents.ts';
import { ROOT } from '../../support/sources.ts';

// `src/README.md` says how to get from a URL to the file that answers it. It must hold for every route that is served.

const [, section = ''] = readText('src/README.md').split(/^## From a URL to a file$/m);
const [text = ''] = section.split(/^## /m);
/** The rows of its table: each path with its file of src. */
const named = new Map(
  [...text.matchAll(/^\| (`.*`) \| `([\w./-]+\.ts)`/gm)].flatMap(([, paths = '', file = '']) =>
    [...paths.matchAll(/`([^`]+)`/g)].map(([, path = '']): [string, string] => [path, file]),
  ),
);

/** The rule for an endpoint: its path is the file's, as far as there is one. */
function fileOf(path: string): string | null {
  const parts = path.split('/').filter(Boolean);
  for (let length = parts.length; length > 0; length--) {
    const stem = parts.slice(0, length).join('/');
    const candidates = [`endpoints/${stem}.ts`, `endpoints/${stem}/${parts[length - 1]}.ts`];
    const found = candidates.find((file) => existsSync(join(ROOT, 'src', file)));
    if (found) return found;
  }
  return null;
}

test.each(catalogue.map(({ path }) => path))(
  'the endpoint %s is declared in the file that the page leads to',
  (path) => {
    const file = named.get(path) ?? fileOf(path);
    expect(file).not.toBeNull();
    expect(readText(`src/${file}`)).toContain(`path: '${path}'`);
  },
);

test('every other route of the API document is named, with a file that has it', () => {
  const { paths } = JSON.parse(readText('openapi/openapi.json')) as { paths: Record<string, object> };
  const isEndpoint = (url: string) =>
    catalogue.some(({ path }) => url.replace(/^\/v1(\/(paid|lightning|mpp))?/, '') === path);
  const others = [
    ...Object.keys(paths).filter((url) => !isEndpoint(url)),
    '/metrics',
    '/',
    '/docs',
    '/status',
    '/market',
  ];
  expect(others.length).toBeGreaterThan(15);
  const missing = others.filter((url) => {
    const file = named.get(url);
    return file === undefined || !existsSync(join(ROOT, 'src', file));
  });
  expect(missing).toEqual([]);
});
