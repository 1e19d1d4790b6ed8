import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parseParams } from '../../../src/catalogue/params.ts';
import { webCheck } from '../../../src/endpoints/web-check.ts';
import { webExtract } from '../../../src/endpoints/web-extract.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { createWeb, type Web } from '../../../src/upstream/web/web.ts';
import { type Replay, startReplay, TEST_CA } from '../../support/upstream/replay.ts';

const signal = new AbortController().signal;
const html = { 'content-type': 'text/html', 'strict-transport-security': 'max-age=100' };
let replay: Replay;
let web: Web & { close(): Promise<void> };
beforeAll(async () => {
  replay = await startReplay(
    {
      '/page': { headers: html, body: '<html lang=en><title>A page</title><p>Short.</p></html>' },
      '/moved': { status: 307, headers: { location: 'https://www.good.example/page#part' } },
      '/nowhere': { status: 302, headers: {} },
      '/plain': {
        headers: { 'content-type': 'text/plain; charset=iso-8859-1' },
        body: Buffer.from('caf\xe9', 'latin1'),
      },
      '/utf8': { status: 301, headers: { location: Buffer.from('/é', 'utf8').toString('latin1') } },
      '/%C3%A9': { headers: html, body: 'found' },
      '/empty': { status: 204 },
    },
    { tls: true },
  );
  const testHosts = new Map(
    ['good.example', 'www.good.example', 'other.example'].map((host) => [
      host,
      { address: '127.0.0.1', port: replay.port },
    ]),
  );
  const dial = { resolve: async () => [], ca: TEST_CA, testHosts };
  const settings = { timeoutMs: 5000, hostPerMinute: 0, pageWorkers: 1 };
  web = createWeb({ clock: systemClock, userAgent: 'x', measuredFrom: 'https://us.example', dial, ...settings });
});
afterAll(async () => {
  await web.close();
  await replay.stop();
});

const check = async (url: string) => webCheck.result.parse(await webCheck.run({ url }, { web } as never, signal));
const extract = async (url: string) => webExtract.result.parse(await webExtract.run({ url }, { web } as never, signal));

describe('web/check', () => {
  test('reports every redirect, TLS and what is missing', async () => {
    expect(await check('https://good.example/moved')).toMatchObject({
      url: 'https://good.example/moved',
      finalUrl: 'https://www.good.example/page#part',
      status: 200,
      up: true,
      redirects: [{ url: 'https://good.example/moved', status: 307 }],
      timings: { dnsMs: expect.any(Number), connectMs: expect.any(Number), tlsMs: expect.any(Number) },
      tls: { protocol: 'TLSv1.3', issuer: 'percall tests', validTo: 4948803968 },
      securityHeaders: { present: [{ name: 'strict-transport-security', judgement: 'weak' }] },
      measuredFrom: 'https://us.example',
      source: { name: 'www.good.example' },
    });
  });

  test('a redirect that leads nowhere is an answer, and counts as up', async () => {
    expect(await check('https://good.example/nowhere')).toMatchObject({ status: 302, up: true, redirects: [] });
  });

  test('a certificate for another name is a failure that says so', async () => {
    const words = 'other.example: its TLS certificate is not valid (ERR_TLS_CERT_ALTNAME_INVALID)';
    await expect(check('https://other.example/page')).rejects.toMatchObject({ status: 502, message: words });
  });
});

describe('web/extract', () => {
  test('decodes by the header and follows a path in raw UTF-8', async () => {
    expect(await extract('https://good.example/plain')).toMatchObject({
      text: 'café',
      charset: 'windows-1252',
      contentType: 'text/plain',
      title: null,
    });
    expect(await extract('https://good.example/utf8')).toMatchObject({
      text: 'found',
      finalUrl: 'https://good.example/%C3%A9',
    });
  });

  test('never sells a redirect that leads nowhere, nor an answer without a page', async () => {
    const failed = { status: 502, message: 'good.example: it answers HTTP 302' };
    await expect(extract('https://good.example/nowhere')).rejects.toMatchObject(failed);
    await expect(extract('https://good.example/empty')).rejects.toMatchObject({ status: 502 });
  });
});

test.each([
  [{}, 'url: required: a public http(s) URL'],
  [{ url: '' }, 'url: a whole URL'],
  [{ url: 'example.com' }, 'url: a whole URL'],
  [{ url: 'http://[::1' }, 'url: a whole URL'],
  [{ url: `http://example.com/${'p'.repeat(2048)}` }, 'url: at most 2048 characters'],
  [{ url: 'http://example.com/', depth: '1' }, 'depth: no such parameter'],
])('%o is refused before any payment', (query, message) => {
  for (const endpoint of [webCheck, webExtract]) expect(() => parseParams(endpoint, query)).toThrow(message);
});
