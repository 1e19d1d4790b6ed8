import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { deflateSync, gzipSync } from 'node:zlib';

// Serves pages for the benchmark `extract`, in its own process, so that the service under test does not spend time on making them.

const SENTENCE =
  'Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna aliqua. ';

/** An article of `bytes` bytes with menus, links, lists and pictures, like real pages of that size. */
function pageOf(bytes: number): Buffer {
  const head = `<!doctype html><html lang="en"><head><title>A long page</title><meta name="description" content="For the bench"></head><body><nav>${'<a href="/x">Section</a>'.repeat(40)}</nav><article><h1>A long page</h1>`;
  const part = (n: number) =>
    `<section class="part"><h2 id="p${n}">Part ${n}</h2><p>${SENTENCE.repeat(3)}<a href="/a${n}">read on</a></p><p>${SENTENCE.repeat(4)}<em>so</em></p><ul><li>one</li><li>two</li></ul><figure><img src="/i${n}.png" alt="i"></figure></section>`;
  const parts: string[] = [head];
  for (let length = head.length, n = 0; length < bytes; n++) {
    const next = part(n);
    parts.push(next);
    length += next.length;
  }
  return Buffer.from(`${parts.join('')}</article></body></html>`);
}

/** A PDF of 20 pages that show this content. Its table is left out; readers make one. */
function pdfOf(content: Buffer): Buffer {
  // Twice, so that a bomb is as quick to fetch as a page.
  const stream = deflateSync(deflateSync(content, { level: 9 }), { level: 9 });
  const font = '<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>';
  const page = `<</Type/Page/Parent 2 0 R/MediaBox[0 0 612 792]/Contents 4 0 R/Resources<</Font<</F1 ${font}>>>>>>`;
  const tree = `<</Type/Pages/Kids[${'3 0 R '.repeat(20)}]/Count 20>>`;
  const objects = ['<</Type/Catalog/Pages 2 0 R>>', tree, page].map((text, n) => `${n + 1} 0 obj\n${text}\nendobj\n`);
  const head = `%PDF-1.7\n${objects.join('')}4 0 obj\n<</Filter[/FlateDecode/FlateDecode]/Length ${stream.length}>>stream\n`;
  return Buffer.concat([Buffer.from(head), stream, Buffer.from('\nendstream\nendobj\ntrailer<</Root 1 0 R>>\n%%EOF')]);
}

const LINES = Buffer.from(`BT /F1 12 Tf 72 760 Td ${`(${SENTENCE}) Tj 0 -14 Td `.repeat(50)}ET`);

const bodies: Record<string, { body: Buffer; coding?: string; type?: string }> = {
  '/page': { body: pageOf(100_000) },
  '/large': { body: pageOf(1_500_000) },
  '/bomb': { body: gzipSync(Buffer.alloc(300 * 1024 * 1024, '<p>')), coding: 'gzip' },
  '/pdf': { body: pdfOf(LINES), type: 'application/pdf' },
  '/pdf-bomb': { body: pdfOf(Buffer.alloc(700 * 1024 * 1024, ' ')), type: 'application/pdf' },
};

const server = createServer((request, response) => {
  const {
    body,
    coding,
    type = 'text/html',
  } = bodies[(request.url ?? '').split('?')[0] ?? ''] ?? { body: Buffer.from('') };
  response.on('error', () => undefined);
  response.writeHead(200, { 'content-type': type, ...(coding && { 'content-encoding': coding }) }).end(body);
});
server.listen(0, '127.0.0.1', () => process.send?.((server.address() as AddressInfo).port));
process.once('disconnect', () => process.exit(0));
