import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { decodePage, readPage } from '../../../../src/upstream/web/page.ts';
import { kindOfPage } from '../../../../src/upstream/web/page-content.ts';
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
    const readDeep = () => read(`<html><body>${'<div>'.repeat(5000)}${sentence.repeat(5)}`);
    expect(readDeep().text).toContain('quick brown fox');
    expect(cpuTimeMs(3000, readDeep)).toBeLessThan(3000);
  });

  test('with thousands of headings names the first 200', () => {
    expect(read(`<html><body>${'<h2>h</h2>'.repeat(3000)}</body></html>`).headings).toHaveLength(200);
  });
});

describe('what a page says about itself', () => {
  const facts = (head: string, body = '<p>x</p>') => {
    const { author, publishedAt, canonicalUrl } = read(`<html><head>${head}</head><body>${body}</body></html>`);
    return { author, publishedAt, canonicalUrl };
  };
  const none = { author: null, publishedAt: null, canonicalUrl: null };
  const ld = (json: string) => `<script type="application/ld+json">${json}</script>`;
  const MAY_1 = Date.UTC(2024, 4, 1) / 1000;

  test.each([
    ['nothing', '', none],
    ['a list of authors', ld('{"@type":"NewsArticle","author":[{"name":"Ann"},{"name":"Bo"}]}'), { author: 'Ann, Bo' }],
    [
      'a graph',
      ld('{"@graph":[{"@type":"WebSite"},{"@type":"Article","datePublished":"2024-05-01T01:00:00+01:00"}]}'),
      { publishedAt: MAY_1 },
    ],
    [
      'an article beside its page',
      `${ld('{"@type":"WebPage","author":"Site"}')}${ld('{"@type":"BlogPosting","author":"Ann"}')}`,
      { author: 'Ann' },
    ],
    ['broken JSON', `${ld('{"author":')}<meta name="author" content=" Ann  Other ">`, { author: 'Ann Other' }],
    ['another thing', ld('{"@type":"Organization","author":"x"}'), none],
    [
      'meta elements',
      '<meta property="article:published_time" content="2024-05-01"><meta name="DC.Creator" content="Ann">',
      { author: 'Ann', publishedAt: MAY_1 },
    ],
    ['a profile as author', '<meta property="article:author" content="https://social.example/ann">', none],
    ['an own address', '<link rel="canonical" href="/news?id=1">', { canonicalUrl: 'https://page.example/news?id=1' }],
    ['an own address of another scheme', '<link rel="canonical" href="javascript:alert(1)">', none],
    ['control characters', '<meta name="author" content="A\u001b[31mnn\u0000">', { author: 'A[31mnn' }],
  ])('%s', (_what, head, expected) => {
    expect(facts(head)).toEqual({ ...none, ...expected });
  });

  test('in JSON-LD whose type is nested deeper than the call stack breaks nothing', () => {
    const type = `${'['.repeat(40_000)}${']'.repeat(40_000)}`;
    const html = `<script type="application/ld+json">{"@type":${type},"author":"Ann"}</script><p>Still read</p>`;
    expect(read(html)).toMatchObject({ text: 'Still read', author: null });
    const listed = '<script type="application/ld+json">{"@type":["Thing","Article"],"author":"Ann"}</script><p>x</p>';
    expect(read(listed).author).toBe('Ann');
  });

  test('in its text counts too', () => {
    const body = '<a rel="author" href="/ann">Ann</a><time itemprop="datePublished" datetime="2024-05-01">May</time>';
    expect(facts('', body)).toEqual({ ...none, author: 'Ann', publishedAt: MAY_1 });
  });
});

describe('the links', () => {
  const article = `<article><p>${sentence.repeat(4)}<a href="deep/er?x=1#part">A  <b>deep</b> link</a></p><p>${sentence}</p></article>`;

  test('are absolute, once each, those of the content first, and none that leads nowhere else', () => {
    const menu =
      '<nav><a href="/">Home</a><a href="//other.example">Other</a><a href="deep/er?x=1#part">again</a></nav>';
    const bad = '<a href="#top">Top</a><a href="javascript:x()">J</a><a href="mailto:a@b.example">M</a><a>none</a>';
    const page = read(
      `<html><body>${menu}${article}${bad}<a href="/icon"><img src="i.png" alt="An icon"></a></body></html>`,
    );
    expect(page.links).toEqual([
      { url: 'https://page.example/news/deep/er?x=1#part', text: 'again', inContent: true },
      { url: 'https://page.example/', text: 'Home', inContent: false },
      { url: 'https://other.example/', text: 'Other', inContent: false },
      { url: 'https://page.example/icon', text: 'An icon', inContent: false },
    ]);
    expect(page.linksTruncated).toBe(false);
  });

  test('refer to the base that the page names, if it is a web address', () => {
    const at = (base: string) => read(`<html><head><base href="${base}"></head><body><a href="x">x</a></body></html>`);
    expect(at('https://cdn.example/a/').links).toMatchObject([{ url: 'https://cdn.example/a/x' }]);
    expect(at('data:text/html,x').links).toMatchObject([{ url: 'https://page.example/news/x' }]);
  });

  test('are limited in number and length', () => {
    const many = Array.from({ length: 500 }, (_, n) => `<a href="/${n}">${'t'.repeat(300)}</a>`).join('');
    const page = read(`<html><body><a href="/${'l'.repeat(1000)}">long</a>${many}</body></html>`);
    expect([page.links.length, page.linksTruncated]).toEqual([200, true]);
    expect(page.links[0]).toMatchObject({ url: 'https://page.example/0', text: 't'.repeat(200) });
  });
});

describe('the Markdown', () => {
  const markdown = (html: string) => read(`<html><body>${html}</body></html>`).markdown;

  test('has headings, lists, emphasis, code, absolute links and pictures, and nothing that is hidden', () => {
    const html = `<h2>Head</h2><p>Some <b>bold</b>, <em>soft</em> <a href="/x(1)" title="t" onclick="e()">link</a>
      <img src="i.png" alt="pic" title="u"><img src="data:image/png,x" alt="no"></p><ul><li>one</li><li>two</li></ul>
      <pre><code class="language-js">a  b</code></pre><p hidden>secret</p><script>code()</script><p><i></i></p><a href="javascript:x()">plain</a>`;
    expect(markdown(html)).toBe(
      [
        ...[
          '## Head',
          'Some **bold**, *soft* [link](https://page.example/x%281%29) ![pic](https://page.example/news/i.png)',
        ],
        ...['-   one\n-   two', '```js\na  b\n```', 'plain'],
      ].join('\n\n'),
    );
  });

  test('has tables of data as tables, those of a layout as text', () => {
    const data =
      '<table><thead><tr><th>A</th><th>B</th></tr></thead><tbody><tr><td>1</td><td>2|<p>3</p></td></tr></tbody></table>';
    expect(markdown(data)).toBe('| A | B |\n| --- | --- |\n| 1 | 2\\| 3 |');
    expect(markdown(`<table><tr><td>left ${data}</td><td>right</td></tr></table>`)).toContain('right');
    expect(markdown('<table><tr><td>one</td></tr><tr><td>two</td></tr></table>')).toBe('one\n\ntwo');
  });

  test('is that of the article, where there is one', () => {
    const html = `<div class="side"><p>Aside words</p></div><article><h2>Part</h2><p>${sentence.repeat(5)}</p><p>${sentence.repeat(5)}</p></article>`;
    const page = read(`<html><body><nav><a href="/">Home</a></nav>${html}</body></html>`);
    expect(page.markdown).toContain('quick brown fox');
    expect(page.markdown).not.toContain('Home');
    expect(page).toMatchObject({ markdownTruncated: false, markdownMissing: null });
  });

  test('is cut at 20,000 characters, and missing where the page is nested too deeply', () => {
    const long = read(`<html><body><article>${`<p>${sentence}</p>`.repeat(600)}</article></body></html>`);
    expect([long.markdown?.length, long.markdownTruncated, long.truncated]).toEqual([20_000, true, true]);
    const deep = read(`<html><body>${'<div>'.repeat(500)}${sentence}`);
    expect(deep).toMatchObject({ markdown: null, markdownMissing: 'unusual_markup', truncated: false });
    expect(deep.text).toContain('quick brown fox');
  });
});

describe('a document that is no HTML', () => {
  test('of Markdown is its own Markdown', () => {
    const page = read('# One\n\ntwo', { kind: 'markdown' });
    expect(page).toMatchObject({ format: 'markdown', text: '# One\n\ntwo', markdown: '# One\n\ntwo', wordCount: 2 });
  });

  test('of JSON is its text, when it is JSON', () => {
    const page = read('\ufeff{"a": [1, "two words"]}\n', { kind: 'json' });
    expect(page).toMatchObject({ format: 'json', text: '{"a": [1, "two words"]}', markdownMissing: 'not_html' });
    expect(() => read('{"a": [1', { kind: 'json' })).toThrow('it answers what is not JSON');
    expect(() => read('', { kind: 'json' })).toThrow('it answers what is not JSON');
  });
});

test.each([
  ['Two words, here; 3.5 more', 5],
  ['東京は日本の首都です', 6],
  ['', 0],
  ['— … !', 0],
])('%j has %i words', (text, words) => {
  expect(read(text, { kind: 'text' }).wordCount).toBe(words);
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

  test.each(cases)('%s: the author is the expected one', (name) => {
    const { byline } = JSON.parse(readFileSync(join(folder, name, 'expected-metadata.json'), 'utf8'));
    const { author } = read(readFileSync(join(folder, name, 'source.html')));
    if (byline !== null) expect(author).not.toBeNull();
    expect(byline ?? '').toContain(author ?? '');
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
