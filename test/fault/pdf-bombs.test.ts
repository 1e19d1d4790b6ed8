import { once } from 'node:events';
import { Worker } from 'node:worker_threads';
import { constants, deflateRawSync } from 'node:zlib';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createPageReader, type PageReader } from '../../src/upstream/web/page-reader.ts';
import type { Loaded, PageReading } from '../../src/upstream/web/page-worker.ts';
import { flate, makePdf, onePage, showLines } from '../support/upstream/pdf.ts';

// PDFs of a few KB that describe gigabytes, or work without an end. Each must fail alone, in time, and leave the process as it was.

const signal = new AbortController().signal;
/** The time of one PDF on a machine that is as busy as it may be. The bombs that never end cost this much. */
const PARSE_MS = 60_000;
/** More than a reader may take, far less than any bomb decodes to. */
const MAX_GROWTH_MB = 350;
const MANY_MB = 700;

let reader: PageReader;
beforeAll(() => {
  reader = createPageReader({ workers: 1, loadMs: 120_000, parseMs: PARSE_MS });
});
afterAll(() => reader.close());

const PDF = {
  url: 'https://page.example/a.pdf',
  contentType: 'application/pdf',
  contentLanguage: null,
  kind: 'pdf',
} as const;
const read = (bytes: Buffer) => reader.read({ ...PDF, bytes }, signal);

/** The error's words of a read that fails, and by how much the process grew meanwhile. */
async function outcome(bytes: Buffer): Promise<{ words: string; growthMb: number }> {
  const before = process.memoryUsage.rss();
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, process.memoryUsage.rss());
  }, 10);
  const words = await read(bytes).then(
    ({ text }) => `read ${text.length}`,
    (error: Error) => error.message,
  );
  clearInterval(watch);
  return { words, growthMb: (most - before) / 2 ** 20 };
}

const WIDTHLESS = (() => {
  const head = '%PDF-1.7\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n';
  const table = '<</Type/XRef/Size 1000000000/W[0 0 0]/Index[0 1000000000]/Root 1 0 R/Length 1>>';
  return Buffer.from(`${head}9 0 obj\n${table}stream\n \nendstream\nendobj\nstartxref\n${head.length}\n%%EOF`);
})();

const RANGE = [0, 1, 2].map((at) => `<0${at}000000> <0${at}FFFFF0> <00410042>`).join(' ');
const MAPPED = onePage('BT /F1 12 Tf 72 700 Td <00010002> Tj ET', {
  resources: '/Font<</F1 7 0 R>>',
  more: [
    [
      '',
      `begincmap /CMapType 2 def 1 begincodespacerange <00000000> <FFFFFFFF> endcodespacerange 3 beginbfrange ${RANGE} endbfrange endcmap`,
    ],
    '<</Type/Font/Subtype/Type0/BaseFont/Foo/Encoding/Identity-H/ToUnicode 6 0 R/DescendantFonts[8 0 R]>>',
    '<</Type/Font/Subtype/CIDFontType2/BaseFont/Foo/CIDSystemInfo<</Registry(Adobe)/Ordering(Identity)/Supplement 0>>/FontDescriptor 9 0 R>>',
    '<</Type/FontDescriptor/FontName/Foo/Flags 4/FontBBox[0 0 9 9]>>',
  ],
});

/** So many blanks, compressed. One block of them is compressed and repeated, because compressing them all takes longer than reading the bombs. */
const BLANKS = (() => {
  const block = deflateRawSync(Buffer.alloc(2 ** 20, ' '), { level: 9, finishFlush: constants.Z_FULL_FLUSH });
  const end = deflateRawSync(Buffer.alloc(0));
  return Buffer.concat([
    Buffer.of(0x78, 0xda),
    ...Array.from({ length: MANY_MB }, () => block),
    end,
    blanksSum(MANY_MB * 2 ** 20),
  ]);
})();

/** Adler-32 of so many blanks, with which zlib ends a stream. */
function blanksSum(count: number): Buffer {
  const [a, b] = [1 + 32 * count, count + 16 * count * (count + 1)].map((sum) => BigInt(sum) % 65_521n) as [
    bigint,
    bigint,
  ];
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(Number((b << 16n) | a));
  return sum;
}

test.each([
  ['a stream that decodes to 700 MB', onePage(BLANKS, { dictionary: '/Filter/FlateDecode' })],
  ['a stream that is compressed twice', onePage(flate(BLANKS), { dictionary: '/Filter[/FlateDecode/FlateDecode]' })],
  ['a table of a billion entries without a width', WIDTHLESS],
  ['a font that maps 50 million codes', MAPPED],
])('a PDF with %s is ended for its memory', async (_what, bomb) => {
  const { words, growthMb } = await outcome(bomb);
  expect(words).toBe('its page is too much to read');
  expect(growthMb).toBeLessThan(MAX_GROWTH_MB);
});

/** The longest that one stream may become, in page-worker.ts. */
const MAX_STREAM = 20 * 2 ** 20;
const TEXT = showLines(['After the blanks']);
/** A page whose content decodes to so many bytes. Its text comes last. */
const longPage = (bytes: number) =>
  onePage(flate(Buffer.from(TEXT.padStart(bytes))), { dictionary: '/Filter/FlateDecode' });
const TOO_LONG = longPage(MAX_STREAM + 1);

test('a PDF whose stream decodes to as much as a stream may is read', async () => {
  expect(await read(longPage(MAX_STREAM))).toMatchObject({ text: 'After the blanks' });
});

test('a PDF whose stream decodes to one byte more is ended', async () => {
  const { words } = await outcome(TOO_LONG);
  expect(words).toBe('its page is too much to read');
});

test('a thread whose memory nobody watches ends itself for such a stream', async () => {
  const thread = new Worker(new URL('../../src/upstream/web/page-worker.ts', import.meta.url));
  const ended = once(thread, 'exit').then(([code]) => `ended with ${code}`);
  const answered = new Promise((resolve) => {
    thread.on('message', (message: Loaded | PageReading) => 'loaded' in message || resolve(message));
  });
  thread.postMessage({ ...PDF, bytes: TOO_LONG });
  expect(await Promise.race([ended, answered])).toBe('ended with 0');
  await thread.terminate();
});

const form = (next: number, content: string) =>
  [
    `/Type/XObject/Subtype/Form/BBox[0 0 9 9]/Resources<</Font<</F1 5 0 R>>/XObject<</X ${next} 0 R>>>>`,
    content,
  ] as const;

test.each([
  [
    'forms that draw forms ten times each',
    onePage('/X Do '.repeat(10), {
      resources: '/XObject<</X 6 0 R>>',
      more: [
        ...[7, 8, 9, 10, 11, 12, 13, 14].map((next) => form(next, '/X Do '.repeat(10))),
        form(99, showLines(['lol '.repeat(500)])),
      ],
    }),
    /^read 20000$|too long|too much/,
  ],
  ['two million open brackets', onePage('['.repeat(2_000_000)), /no text/],
  [
    'two million open brackets as an object',
    makePdf(['<</Type/Catalog/Pages 2 0 R>>', '['.repeat(2_000_000)]),
    /broken/,
  ],
  [
    'a page tree that holds itself',
    makePdf(['<</Type/Catalog/Pages 2 0 R>>', '<</Type/Pages/Kids[2 0 R 2 0 R]/Count 9>>']),
    /broken|no text/,
  ],
  [
    'a billion pages that are not there',
    makePdf(['<</Type/Catalog/Pages 2 0 R>>', '<</Type/Pages/Kids[]/Count 1000000000>>']),
    /broken|no text/,
  ],
  [
    'a table whose predecessor is itself',
    Buffer.from('%PDF-1.7\nxref\n0 1\n0000000000 65535 f \ntrailer<</Size 3/Root 1 0 R/Prev 9>>\nstartxref\n9\n%%EOF'),
    /broken/,
  ],
  [
    'three MB of object heads',
    Buffer.concat([Buffer.from('%PDF-1.7\n'), Buffer.alloc(3_000_000, '1 0 obj\n')]),
    /broken/,
  ],
  [
    'a picture of 3,600 million points',
    onePage('/I Do', {
      resources: '/XObject<</I 6 0 R>>',
      more: [
        [
          '/Type/XObject/Subtype/Image/Width 60000/Height 60000/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/FlateDecode',
          flate(Buffer.alloc(2 ** 20)),
        ],
      ],
    }),
    /no text/,
  ],
  ['nothing but its mark', Buffer.from('%PDF-1.7'), /broken/],
])('a PDF with %s does no harm', async (_what, bomb, words) => {
  const { words: said, growthMb } = await outcome(bomb);
  expect(said).toMatch(words);
  expect(growthMb).toBeLessThan(MAX_GROWTH_MB);
});

test('after all of them a PDF and a page are read as before', async () => {
  expect(await read(onePage(showLines(['Still here'])))).toMatchObject({ text: 'Still here', pageCount: 1 });
  const html = { bytes: Buffer.from('<p>And here</p>'), contentType: 'text/html', contentLanguage: null };
  const page = await reader.read({ ...html, url: 'https://page.example/', kind: 'html' }, signal);
  expect(page.text).toBe('And here');
});

/** Each `[` and `{` becomes an object while JSON is checked. */
test.each([
  ['open brackets', '['],
  ['empty objects', '{},'],
  ['empty lists', '[],'],
  ['objects in objects', '{"a":'],
])('three MB of JSON made of %s fail alone', async (_what, piece) => {
  const bytes = Buffer.from(`[${piece.repeat(3_000_000 / piece.length)}`);
  const source = { bytes, url: 'https://page.example/', contentType: 'application/json', contentLanguage: null };
  await expect(reader.read({ ...source, kind: 'json' }, signal)).rejects.toThrow(/not JSON|too much/);
});
