import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPageReader, type PageReader } from '../../src/upstream/web/page-reader.ts';

const signal = new AbortController().signal;
const page = (html: string) => ({
  bytes: Buffer.from(html),
  url: 'https://page.example/',
  contentType: 'text/html',
  contentLanguage: null,
  kind: 'html' as const,
});

let reader: PageReader;
// One thread reads them all, as that of a service would.
beforeAll(() => {
  reader = createPageReader({ workers: 1, loadMs: 120_000, parseMs: 120_000 });
});
afterAll(() => reader.close());

/** What becomes the largest number of attributes. */
const LARGEST: [string, string][] = [['attributes', '<p a b c d e f>']];
/** How each counts for the limit, test/unit/upstream/web/page-markup.test.ts checks with every change. Reading these takes 24 s of processor time. */
const OTHERS: [string, string][] = [
  // The largest tree.
  ['elements with text', 'a<br>'],
  ['elements', '<p>'],
  ['entities', '&lt;x'],
  ['comments', '<!---->'],
  ['headings', '<h1>x</h1>'],
  ['table cells', '<tr><td>x'],
];

/** Each page has at most 3 MB. Parsed without a limit it would become a tree of hundreds of MB. A worker out of memory would end the process. */
test.each(process.env.SLOW ? [...LARGEST, ...OTHERS] : LARGEST)(
  'a page of nothing but %s is read within the memory limit',
  async (_what, piece) => {
    const bomb = page(`<html><body><table>${piece.repeat(3_000_000 / piece.length)}`);
    expect((await reader.read(bomb, signal)).truncated).toBe(true);
  },
);

test('one element with a million attributes is read within the memory limit', async () => {
  const names = Array.from({ length: 400_000 }, (_, n) => `a${n}`).join(' ');
  expect((await reader.read(page(`<html><body><p ${names}>x</p>`), signal)).truncated).toBe(true);
});
