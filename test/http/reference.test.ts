import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { parseHTML } from 'linkedom';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mountAssets } from '../../src/pages/mount-page.ts';
import { mountReference } from '../../src/pages/reference.ts';
import { createTestApp } from './harness.ts';

const LIBRARY = readFileSync(createRequire(import.meta.url).resolve('swagger-ui-dist/swagger-ui-bundle.js'));
const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

let app: Awaited<ReturnType<typeof createTestApp>>['app'];
beforeAll(async () => {
  const extra = (scope: typeof app) => {
    mountAssets(scope);
    mountReference(scope, { name: 'Arc', isPlayMoney: false }, false);
  };
  ({ app } = await createTestApp({ extra }));
});
afterAll(() => app.close());

const page = async () => parseHTML((await app.inject('/docs')).body).document;
const libraryPath = async () => {
  const scripts = [...(await page()).querySelectorAll('script')].map((script) => script.getAttribute('src') ?? '');
  return scripts.find((src) => src.includes('swagger-ui')) ?? 'no library on the page';
};

describe('/docs', () => {
  test('is a page under the strict policy of all pages, the library included', async () => {
    for (const path of ['/docs', await libraryPath()]) {
      const { statusCode, headers } = await app.inject(path);
      expect([path, statusCode]).toEqual([path, 200]);
      expect(headers['content-security-policy']).toBe(POLICY);
      expect(headers['x-content-type-options']).toBe('nosniff');
      expect(headers['referrer-policy']).toBe('no-referrer');
    }
    expect((await app.inject('/docs')).headers['content-type']).toBe('text/html; charset=utf-8');
  });

  test('loads nothing from other hosts and runs nothing inline', async () => {
    const document = await page();
    const loaded = [...document.querySelectorAll('script, link[rel=stylesheet], link[rel=icon], img')].map(
      (element) => element.getAttribute('src') ?? element.getAttribute('href') ?? 'inline',
    );
    expect(loaded.length).toBeGreaterThan(4);
    for (const path of loaded) {
      expect(path).toMatch(/^\/assets\/[\w-]+\.[\w-]{16}\.(js|css|svg)$/);
      const { statusCode, headers } = await app.inject(path);
      expect([path, statusCode, headers['cache-control']]).toEqual([path, 200, 'public, max-age=31536000, immutable']);
    }
    expect(document.querySelectorAll('style, [style], [onclick], [onload]')).toHaveLength(0);
  });

  test('without scripts links to the same content for programs and as text', async () => {
    const links = [...((await page()).querySelector('noscript')?.querySelectorAll('a') ?? [])];
    const paths = links.map((link) => link.getAttribute('href') ?? '');
    expect(paths).toEqual(['/openapi.json', '/llms.txt']);
    for (const path of paths) expect([path, (await app.inject(path)).statusCode]).toEqual([path, 200]);
  });

  test('answers GET and HEAD only', async () => {
    for (const url of ['/docs', await libraryPath()]) {
      const head = await app.inject({ method: 'HEAD', url });
      expect([head.statusCode, head.body]).toEqual([200, '']);
      const { statusCode, headers } = await app.inject({ method: 'POST', url });
      expect([statusCode, headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS']);
    }
  });
});

describe('the library', () => {
  test('is the installed one, byte for byte, in each encoding', async () => {
    const url = await libraryPath();
    const asked = async (accept: string) => {
      const answer = await app.inject({ url, headers: { 'accept-encoding': accept } });
      return { encoding: answer.headers['content-encoding'], bytes: answer.rawPayload, vary: answer.headers.vary };
    };
    const [br, gzip, plain] = await Promise.all([asked('gzip, br'), asked('gzip'), asked('identity')]);
    expect([br.encoding, gzip.encoding, plain.encoding]).toEqual(['br', 'gzip', undefined]);
    expect([br.vary, gzip.vary, plain.vary]).toEqual(Array(3).fill('accept-encoding'));
    for (const bytes of [brotliDecompressSync(br.bytes), gunzipSync(gzip.bytes), plain.bytes]) {
      expect(bytes.equals(LIBRARY)).toBe(true);
    }
    expect(br.bytes.length).toBeLessThan(400_000);
    expect(url).toContain(createHash('sha256').update(LIBRARY).digest('base64url').slice(0, 16));
  });

  test('is not sent again to a client that has it', async () => {
    const url = await libraryPath();
    const headers = { 'accept-encoding': 'br' };
    const { etag } = (await app.inject({ url, headers })).headers;
    const again = await app.inject({ url, headers: { ...headers, 'if-none-match': String(etag) } });
    expect([again.statusCode, again.body]).toEqual([304, '']);
    const other = await app.inject({ url, headers: { 'if-none-match': String(etag) } });
    expect(other.statusCode).toBe(200);
  });

  test('under another hash does not exist', async () => {
    const url = (await libraryPath()).replace(/\.[\w-]{16}\./, `.${'0'.repeat(16)}.`);
    expect((await app.inject(url)).statusCode).toBe(404);
  });
});
