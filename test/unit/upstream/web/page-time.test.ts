import { expect, test } from 'vitest';
import { readPage } from '../../../../src/upstream/web/page.ts';
import { cpuTimeMs } from '../../../support/cpu-time.ts';

const read = (html: string) =>
  readPage({
    bytes: Buffer.from(html),
    url: 'https://page.example/',
    contentType: 'text/html; charset=utf-8',
    contentLanguage: null,
    kind: 'html',
  });
const spaces = ' '.repeat(100_000);

/** Each took three to fourteen seconds once, in a thread that all pages share. */
test.each([
  ['a run of spaces in preformatted text', `<pre>a${spaces}x</pre>`],
  ['a run of empty lines in preformatted text', `<pre>a${'\n'.repeat(100_000)}x</pre>`],
  ['a megabyte of spaces in preformatted text', `<pre>a${spaces.repeat(10)}x</pre>`],
  [
    'a run of spaces in preformatted text of a cell',
    `<table><tr><td><pre>a${spaces}x</pre></td><td>y</td></tr></table>`,
  ],
  ['JSON-LD that does not end', `<p>x</p>${'application/ld+json>'.repeat(70_000)}`],
  ['headings that do not end', `${'<h1>'.repeat(200)}${'word '.repeat(200_000)}`],
])('a page with %s takes little of the processor', (_what, html) => {
  expect(cpuTimeMs(2000, () => read(html))).toBeLessThan(2000);
});

test('links and headings without an end end at the next one, as in a browser', () => {
  const page = read(
    '<body><a href=/1>one <a href=/2><img alt=two></a></a><h1>First <h2>Second <b>part</b></h2></h1></body>',
  );
  expect(page.links.map(({ text }) => text)).toEqual(['one', 'two']);
  expect(page.headings.map(({ text }) => text)).toEqual(['First', 'Second part']);
});

test('long runs of white space are shortened in the Markdown, short ones kept', () => {
  expect(read(`<pre>a   b${spaces}c</pre>`).markdown).toBe(`a   b${' '.repeat(200)}c`);
});
