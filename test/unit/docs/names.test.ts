import { describe, expect, test } from 'vitest';
import { blocksOf, GUIDES, inRepository, readText } from '../../support/documents.ts';

// Names in the guides must exist in the code: keys, commands, error codes, metrics, routes.

const source = inRepository('src/**/*.ts').map(readText).join('\n');
// Builds of programs hold the service's sources, too.
const isWritten = (path: string): boolean => !path.startsWith('test/dist/');
const tools = inRepository('{cli,scripts,test}/**/*.{ts,js}').filter(isWritten).map(readText).join('\n');

describe.each(GUIDES)('%s', (guide) => {
  const text = readText(guide);

  test('names environment keys that the service or a tool reads', () => {
    const explained = [...readText('.env.example').matchAll(/^([A-Z][A-Z0-9_]*)=/gm)].map(([, key]) => String(key));
    expect(explained.length).toBeGreaterThan(50);
    const isKnown = (key: string): boolean => explained.includes(key) || new RegExp(`\\b${key}\\b`).test(tools);
    // `MARKET_…` and `REMOTE_FACILITATOR_*` stand for all keys with that prefix.
    const families = [...text.matchAll(/\b([A-Z][A-Z0-9_]*_)[*…]/g)].map(([, start]) => String(start));
    const keys = text.replace(/\b[A-Z][A-Z0-9_]*_[*…]/g, '').match(/\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b/g) ?? [];
    expect(families.filter((start) => !explained.some((key) => key.startsWith(start)))).toEqual([]);
    expect(keys.filter((key) => !isKnown(key))).toEqual([]);
  });

  test('names npm scripts that exist', () => {
    const scripts = Object.keys(JSON.parse(readText('package.json')).scripts);
    const named = [...text.matchAll(/npm (?:run (?:-s )?|(?=start|test\b))([a-z][\w:-]*)/g)].map(([, name]) => name);
    expect(named.filter((name) => !scripts.includes(String(name)))).toEqual([]);
  });

  test('names routes that the service has', () => {
    const { paths } = JSON.parse(readText('openapi/openapi.json')) as { paths: Record<string, object> };
    // Metrics are for operators, so no API document describes them.
    const known = [...Object.keys(paths), '/metrics'];
    const named = [...text.matchAll(/`(?:GET|POST) (\/[\w./{}-]*)/g)].map(([, path = '']) => path.replace(/\/$/, ''));
    const missing = named.filter((path) => !known.some((route) => route === path || route.startsWith(`${path}/`)));
    expect(missing).toEqual([]);
  });
});

test('docs/paying.md and docs/selling.md name error codes that the service sends', () => {
  const text = readText('docs/paying.md') + readText('docs/selling.md');
  const rows = [...text.matchAll(/^\| (?=\d{3})(.*)$|\| (\d{3} `.*)$/gm)].map(([row]) => row);
  const codes = rows.flatMap((row) => [...row.matchAll(/`([a-z]+(?:_[a-z]+)+)`/g)].map(([, code]) => String(code)));
  expect(codes.length).toBeGreaterThan(20);
  expect(codes.filter((code) => !source.includes(`'${code}'`))).toEqual([]);
});

test('the blocks of JSON in README.md are JSON', () => {
  const blocks = blocksOf(readText('README.md'), 'json');
  expect(blocks).toHaveLength(3);
  for (const block of blocks) expect(() => JSON.parse(block)).not.toThrow();
});
