import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createPageReader, type PageReader } from '../../../../src/upstream/web/page-reader.ts';
import { makePdf, onePage, showLines } from '../../../support/upstream/pdf.ts';

// Through the worker, as the service reads them: the library changes globals of its thread.

const signal = new AbortController().signal;
/** A report that a development dependency ships. */
const REPORT = join(
  import.meta.dirname,
  '../../../../node_modules/@uniswap/v4-core/lib/openzeppelin-contracts/audits/2022-10-Checkpoints.pdf',
);

let reader: PageReader;
beforeAll(() => {
  reader = createPageReader({ workers: 1, loadMs: 120_000, parseMs: 120_000 });
});
afterAll(() => reader.close());

const read = (bytes: Buffer) =>
  reader.read(
    { bytes, url: 'https://page.example/a.pdf', contentType: 'application/pdf', contentLanguage: 'de', kind: 'pdf' },
    signal,
  );

describe('a PDF', () => {
  test('gives its text in lines and paragraphs, and what it says about itself', async () => {
    const info = "<</Title(A title)/Author(Ann Other)/Subject(What it is)/CreationDate(D:20240102030405+01'00')>>";
    const content = `${showLines(['One line', 'and the next'])} BT /F1 12 Tf 72 600 Td (A new paragraph) Tj ET`;
    expect(await read(onePage(content, { more: [info], trailer: '/Info 6 0 R' }))).toEqual({
      format: 'pdf',
      charset: 'binary',
      title: 'A title',
      author: 'Ann Other',
      description: 'What it is',
      language: 'en-GB',
      publishedAt: Date.UTC(2024, 0, 2, 2, 4, 5) / 1000,
      canonicalUrl: null,
      headings: [],
      text: 'One line\nand the next\n\nA new paragraph',
      characters: 38,
      truncated: false,
      wordCount: 8,
      pageCount: 1,
      markdown: null,
      markdownTruncated: false,
      markdownMissing: 'not_html',
      links: [],
      linksTruncated: false,
    });
  });

  test('is cut at 20,000 characters', async () => {
    const kids = Array.from({ length: 60 }, () => '3 0 R').join(' ');
    const lines = Array.from({ length: 50 }, (_, n) => `Line ${n} of many lines on many pages`);
    const bytes = makePdf([
      ...['<</Type/Catalog/Pages 2 0 R>>', `<</Type/Pages/Kids[${kids}]/Count 60>>`],
      '<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 5 0 R>>>>>>',
      ['', showLines(lines)],
      '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>',
    ]);
    expect(await read(bytes)).toMatchObject({ characters: 20_000, truncated: true, pageCount: 60 });
  });

  test.each([
    ['whose pages are pictures', onePage('q Q'), 'its PDF has no text; its pages may be pictures'],
    ['that is cut short', onePage(showLines(['x'])).subarray(0, 40), 'its PDF is broken'],
    ['that is none', Buffer.from('<html>Not found</html>'), 'its PDF is broken'],
    [
      'that needs a password',
      onePage(showLines(['x']), {
        trailer: `/ID[<${'00'.repeat(16)}><${'00'.repeat(16)}>]/Encrypt<</Filter/Standard/V 1/R 2/P -4/O<${'12'.repeat(32)}>/U<${'34'.repeat(32)}>>>`,
      }),
      'its PDF needs a password',
    ],
  ])('%s is not sold', async (_what, bytes, reason) => {
    await expect(read(bytes)).rejects.toThrow(reason);
  });
});

test.skipIf(!existsSync(REPORT))('a real report is read in its order', async () => {
  const page = await read(readFileSync(REPORT));
  expect(page).toMatchObject({ title: 'OpenZeppelin Audit Report', author: 'OpenZeppelin', pageCount: 9 });
  expect(page.text).toMatch(/^OpenZeppelin\nCheckpoints\nLibrary Audit\n[\s\S]*\nTable of Contents\n/);
  expect(page.wordCount).toBeGreaterThan(500);
});
