import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readPage } from '../../../../src/upstream/web/page.ts';
import { decodePage } from '../../../../src/upstream/web/page-charset.ts';
import { kindOfPage } from '../../../../src/upstream/web/page-kind.ts';
import { cpuTimeMs } from '../../../support/cpu-time.ts';

const SAMPLES = join(import.meta.dirname, '../../../../../shared/samples/web');

const read = (html: string | Uint8Array, more: Partial<Parameters<typeof readPage>[0]> = {}) =>
  readPage({
    bytes: typeof html === 'string' ? Buffer.from(html) : html,
    url: 'https://page.example/news/today',
    contentType: null,
    contentLanguage: null,
    kind: 'html',
    ...more,
  });
const sentence = 'The quick brown fox jumps over the lazy dog, and the dog does not mind in the least. ';

describe('a page', () => {
  test('gives title, description, language, headings and the article without what surrounds it', () => {
    const html = `<!doctype html><html lang="en-GB"><head><title> A
      title </title><meta name="Description" content="What it is &amp; is not"></head><body>
      <nav><a href="/">Home</a> <a href="/a">About</a></nav>
      <article><h1>Heading <em>one</em></h1><p>${sentence.repeat(4)}</p><h3>Below</h3><p>${sentence}<br>next line</p>
      <script>alert(1)</script><ul><li>first</li><li>second</li></ul><pre>a  b\n c</pre></article>
      <footer>All rights reserved</footer></body></html>`;
    const page = read(html);
    expect(page).toMatchObject({
      charset: 'utf-8',
      title: 'A title',
      description: 'What it is & is not',
      language: 'en-GB',
      headings: [
        { level: 1, text: 'Heading one' },
        { level: 3, text: 'Below' },
      ],
      truncated: false,
    });
    expect(page.text).toContain(`${sentence.trim()}\nnext line`);
    expect(page.text).toContain('first\nsecond');
    expect(page.text).not.toMatch(/alert|Home|rights/);
    expect(page.characters).toBe([...page.text].length);
  });

  test('without an article gives all that is to be seen, and no more', () => {
    const html = `<body><h1>Shop</h1><p>Open <b>today</b></p><div hidden>x1</div><div style="color:red; display: none">x2</div>
      <p aria-hidden="true">x3</p><template>x4</template><noscript>x5</noscript><select><option>x6</select><p>till six</p></body>`;
    expect(read(html)).toMatchObject({
      title: 'Shop',
      description: null,
      language: null,
      text: 'Shop\n\nOpen today\n\ntill six',
    });
  });

  test('that is mostly links is no article, however long the list', () => {
    const links = Array.from(
      { length: 60 },
      (_, n) => `<li><a href="/${n}">A link with quite some words in it ${n}</a></li>`,
    );
    const page = read(`<html><body><main><p>Before the list</p></main><ul>${links.join('')}</ul></body></html>`);
    expect(page.text).toContain('Before the list');
  });

  test('is cut at 20,000 characters, never inside one', () => {
    const fits = read('a'.repeat(20_000), { kind: 'text' });
    expect([fits.characters, fits.truncated]).toEqual([20_000, false]);
    const cut = read(`a${'😀'.repeat(20_000)}`, { kind: 'text' });
    expect([cut.characters, cut.truncated, cut.text.length]).toEqual([20_000, true, 39_999]);
    expect(cut.text.isWellFormed()).toBe(true);
    const page = read(`<html><body><article><p>${'😀 word '.repeat(20_000)}</p></article></body></html>`);
    expect([page.characters, page.truncated, page.text.isWellFormed()]).toEqual([20_000, true, true]);
  });

  test('of plain text is its text', () => {
    const page = read('line one\r\n  <b>line</b> two\n', { kind: 'text', contentLanguage: 'de-CH, en' });
    expect(page).toMatchObject({ title: null, headings: [], language: 'de-CH', text: 'line one\n  <b>line</b> two' });
  });

  test('of XHTML may close any element at once', () => {
    const xhtml = `<?xml version="1.0" encoding="UTF-8"?><html xmlns="http://www.w3.org/1999/xhtml" xml:lang="fr"><head>
      <script type="text/javascript" src="a>b.js"/><title>Le titre</title></head><body><div id="x"/><p>un<br/>deux</p></body></html>`;
    expect(read(xhtml, { kind: 'xhtml' })).toMatchObject({ title: 'Le titre', language: 'fr', text: 'un\ndeux' });
  });

  test.each([
    ['nothing', ''],
    ['no markup', 'just words'],
    ['a broken tag', '<html><body><p'],
    ['unclosed everything', '<html><head><title>t<body><div><p>x'],
    ['an empty root', '<html></html>'],
    ['a NUL', '<p>a\0b</p>'],
  ])('made of %s breaks nothing', (_what, html) => {
    expect(read(html).text.length).toBeLessThanOrEqual(html.length);
  });

  test('nested deeper than any reader goes is read all the same, soon', () => {
    const started = cpuTimeMs();
    const page = read(`<html><body>${'<div>'.repeat(5000)}${sentence.repeat(5)}`);
    expect(page.text).toContain('quick brown fox');
    expect(cpuTimeMs() - started).toBeLessThan(3000);
  });

  test('with thousands of headings names the first 200', () => {
    expect(read(`<html><body>${'<h2>h</h2>'.repeat(3000)}</body></html>`).headings).toHaveLength(200);
  });
});

describe('the charset', () => {
  const decoded = (bytes: Uint8Array, contentType: string | null = null) => decodePage(bytes, contentType, 'html');
  const latin = Buffer.from([0x3c, 0x70, 0x3e, 0x93, 0xe9, 0x80, 0x94]);

  test('comes from the byte order mark, then the header, then the page, then the bytes', () => {
    const marked = Buffer.from('\ufeff<meta charset=koi8-r>é', 'utf8');
    expect(decoded(marked, 'text/html; charset=iso-8859-2')).toEqual({
      charset: 'utf-8',
      text: '<meta charset=koi8-r>é',
    });
    expect(decoded(Buffer.from('<meta charset=koi8-r>'), 'text/html; Charset="ISO-8859-2"').charset).toBe('iso-8859-2');
    expect(decoded(Buffer.from('<meta charset=koi8-r>')).charset).toBe('koi8-r');
    expect(decoded(Buffer.from('<p>é')).charset).toBe('utf-8');
    expect(decoded(latin)).toEqual({ charset: 'windows-1252', text: '<p>“é€”' });
  });

  test('that is unknown or unsafe refuses no page', () => {
    expect(decoded(latin, 'text/html; charset=nonsense').charset).toBe('windows-1252');
    expect(decoded(latin, 'text/html; charset=iso-2022-kr').text).toContain('\ufffd');
  });
});

test.each([
  ['text/html; charset=utf-8', null, 'html'],
  ['TEXT/HTML', null, 'html'],
  ['application/xhtml+xml', null, 'xhtml'],
  ['text/plain', null, 'text'],
  ['text/markdown', null, 'markdown'],
  ['application/pdf', '<html>', 'pdf'],
  ['application/json; charset=utf-8', null, 'json'],
  ['application/ld+json', null, 'json'],
  ['application/octet-stream', '%PDF-1.7', 'other'],
  ['image/png', null, 'other'],
  ['', '<html>', 'other'],
  [null, '<!DOCTYPE html><p>', 'html'],
  [null, '  just words', 'text'],
  [null, '%PDF-1.7\0\0', 'pdf'],
  [null, 'PDF\0', 'other'],
  [null, '\ufeffwords', 'text'],
])('content type %s with %j is read as %s', (contentType, body, kind) => {
  expect(kindOfPage(contentType, body === null ? null : Buffer.from(body))).toBe(kind);
});

describe.skipIf(!existsSync(SAMPLES))('recorded pages (../shared/samples)', () => {
  const folder = join(SAMPLES, 'readability');
  const cases = existsSync(folder) ? readdirSync(folder) : [];

  test.each(cases)('%s: the title is found and the text is that of the expected article', (name) => {
    const page = read(readFileSync(join(folder, name, 'source.html')));
    const expected = read(readFileSync(join(folder, name, 'expected.html'))).text;
    const words = expected.split(/\s+/).filter((word) => word.length > 3);
    const found = words.filter((word) => page.text.includes(word));
    expect(found.length).toBeGreaterThanOrEqual(words.length * 0.95);
  });

  test.each(['bom', 'normal', 'utf', 'no-result'])('charsets by their file names: %s', (kind) => {
    for (const file of readdirSync(join(SAMPLES, 'charset', kind))) {
      const wanted = /([^_]+)\.html$/.exec(file)?.[1]?.toLowerCase();
      const { charset } = decodePage(readFileSync(join(SAMPLES, 'charset', kind, file)), null, 'html');
      // Without any sign we look whether the bytes are UTF-8 before we take windows-1252; and meta's utf-16 means utf-8.
      if (kind === 'no-result') expect(['utf-8', wanted]).toContain(charset);
      else expect([file, charset]).toEqual([file, kind === 'utf' ? 'utf-8' : wanted]);
    }
  });
});
