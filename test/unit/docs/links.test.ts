import { posix } from 'node:path';
import { describe, expect, test } from 'vitest';
import { DOCUMENTS, GUIDES, inRepository, readText } from '../../support/documents.ts';

const MAX_README_LINES = 140;

/** The text without its code, in which brackets and hashes have another meaning. */
const proseOf = (text: string): string => text.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, 'code');

/** The anchors that GitHub makes of a document's headings: lower case, no punctuation, hyphens for spaces, a number after a repeated one. */
function anchorsOf(text: string): string[] {
  const seen = new Map<string, number>();
  return [...text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#{1,6} (.+)$/gm)].map(([, heading = '']) => {
    const slug = heading
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\s_-]/gu, '')
      .trim()
      .replaceAll(' ', '-');
    const times = seen.get(slug) ?? 0;
    seen.set(slug, times + 1);
    return times === 0 ? slug : `${slug}-${times}`;
  });
}

/** Why a link of a document is dead; null when it is not. */
function faultOf(from: string, target: string): string | null {
  const [path = '', anchor] = target.split('#');
  const file = path === '' ? from : posix.join(posix.dirname(from), decodeURI(path)).replace(/\/$/, '');
  if (inRepository(file).length === 0) return `${file} does not exist`;
  if (anchor === undefined) return null;
  if (!file.endsWith('.md')) return `${file} has no headings`;
  return anchorsOf(readText(file)).includes(anchor) ? null : `${file} has no heading for #${anchor}`;
}

const relativeLinks = (text: string): string[] =>
  [...proseOf(text).matchAll(/\]\(([^)\s]+)\)/g)].flatMap(([, target = '']) =>
    /^[a-z]+:/i.test(target) ? [] : [target],
  );

test(`README.md has at most ${MAX_README_LINES} lines, so that a new reader reads all of it`, () => {
  expect(readText('README.md').trimEnd().split('\n').length).toBeLessThanOrEqual(MAX_README_LINES);
});

test('an anchor is made from a heading as GitHub makes it', () => {
  expect(anchorsOf('# A `b`, c!\n## Errors and `charged`\n## x\n## x\n')).toEqual([
    'a-b-c',
    'errors-and-charged',
    'x',
    'x-1',
  ]);
});

test('a link to a missing file or a missing heading is found', () => {
  expect(faultOf('README.md', 'docs/nowhere.md')).toBe('docs/nowhere.md does not exist');
  expect(faultOf('docs/paying.md', '../README.md#nowhere')).toBe('README.md has no heading for #nowhere');
  expect(faultOf('docs/paying.md', '#errors-and-charged')).toBeNull();
});

describe.each(DOCUMENTS)('%s', (document) => {
  const text = readText(document);

  test('has only relative links that lead to a file, a folder or a heading', () => {
    const faults = relativeLinks(text).flatMap((target) => faultOf(document, target) ?? []);
    expect(faults).toEqual([]);
  });

  test('names only documents that exist where it names one without a link', () => {
    const named = [...text.matchAll(/(?<![\w/.-])docs\/[a-z-]+\.md(?:#[\w-]+)?/g)].map(([target]) => target);
    expect(named.flatMap((target) => faultOf('README.md', target) ?? [])).toEqual([]);
  });
});

test('the guides have many links, so that these tests check something', () => {
  expect(GUIDES.flatMap((guide) => relativeLinks(readText(guide))).length).toBeGreaterThan(30);
});

test.each(GUIDES)('%s names files of the repository that exist', (guide) => {
  const named = [...readText(guide).matchAll(/`((?:src|test|scripts|docs)\/[\w./*-]+)`/g)].map(([, path = '']) => path);
  expect(named.filter((path) => inRepository(path.replace(/\/$/, '')).length === 0)).toEqual([]);
});
