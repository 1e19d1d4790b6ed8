import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseHTML } from 'linkedom';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { mountReference } from '../../src/pages/reference.ts';
import type { Document } from '../../src/pages/reference-document.ts';
import { mountAssets } from '../../src/pages/send.ts';
import { createTestApp } from './harness.ts';

const POLICY =
  "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/** The document of the real catalogue. */
const DOCUMENT: Document = JSON.parse(readFileSync(join(import.meta.dirname, '../../openapi/openapi.json'), 'utf8'));

let app: Awaited<ReturnType<typeof createTestApp>>['app'];
beforeAll(async () => {
  const chain = { name: 'Arc', isPlayMoney: false, caip2: 'eip155:5042', chainId: 5042, explorerUrl: null };
  const network = { ...chain, usdc: `0x36${'0'.repeat(38)}`, getUsdcUrl: null, walletRpcUrls: [] };
  const site = { web: { contactUrl: null }, site: { sourceUrl: null, termsUrl: null } };
  const config = {
    publicOrigin: 'https://us.example',
    network,
    protocols: { mpp: false },
    rails: { gateway: null },
    ...site,
  };
  const extra = (scope: typeof app) => {
    mountAssets(scope);
    mountReference(scope, { config, demoBuyer: null, document: async () => DOCUMENT });
  };
  ({ app } = await createTestApp({ extra }));
});
afterAll(() => app.close());

const page = async (url: string) => parseHTML((await app.inject(url)).body).document;
let parsed: ReturnType<typeof page> | undefined;
/** The whole page. It is large, so it is parsed once; the tests only read it. */
const wholePage = () => {
  parsed ??= page('/docs');
  return parsed;
};

describe('/docs', () => {
  test('is a page under the strict policy of all pages, and loads nothing from other hosts', async () => {
    const { statusCode, headers } = await app.inject('/docs');
    expect([statusCode, headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(headers['content-security-policy']).toBe(POLICY);
    expect(headers['x-content-type-options']).toBe('nosniff');
    expect(headers['referrer-policy']).toBe('no-referrer');
    const document = await wholePage();
    const loaded = [...document.querySelectorAll('script, link[rel=stylesheet], link[rel=icon], img')].map(
      (element) => element.getAttribute('src') ?? element.getAttribute('href') ?? 'inline',
    );
    expect(loaded.length).toBeGreaterThan(4);
    for (const path of loaded) {
      expect(path).toMatch(/^\/assets\/[\w-]+\.[\w-]{16}\.(js|css|svg)$/);
      const asset = await app.inject(path);
      expect([path, asset.statusCode]).toEqual([path, 200]);
      expect(asset.headers['cache-control']).toBe('public, max-age=31536000, immutable');
      expect(asset.headers['content-security-policy']).toBe(POLICY);
    }
    expect(document.querySelectorAll('style, [style], [onclick], [onload]')).toHaveLength(0);
  });

  test('has every operation of the document without scripts, with its price and code in three languages', async () => {
    const { paths } = DOCUMENT;
    const document = await wholePage();
    const shown = [...document.querySelectorAll('details.op')];
    const operations = Object.entries(paths).flatMap(([path, methods]) =>
      Object.entries(
        methods as Record<string, { operationId: string; 'x-payment-info'?: { price: { amount: string } } }>,
      ).map(([method, { operationId, 'x-payment-info': payment }]) => ({
        path,
        method,
        operationId,
        usd: payment?.price.amount,
      })),
    );
    expect(shown.map(({ id }) => id).sort()).toEqual(operations.map(({ operationId }) => operationId).sort());
    const byId = new Map([...document.querySelectorAll('[id]')].map((element) => [element.id, element]));
    for (const { path, method, operationId, usd } of operations) {
      const one = byId.get(operationId);
      expect(one?.querySelector('summary')?.textContent).toContain(`${method.toUpperCase()} ${path}`);
      expect(one?.querySelector('.op-price')?.textContent).toBe(usd && `${usd} USD`);
      const languages = ['curl', 'typescript', 'python'].map((name) => byId.get(`${operationId}-${name}`));
      for (const code of languages) expect(code?.textContent).toContain('https://us.example/');
    }
  });

  test('fills every required parameter with an example that fits it, and never with a placeholder', async () => {
    const document = await wholePage();
    const fields = [...document.querySelectorAll('.try input, .try select, .try textarea')];
    const shownIn = (field: (typeof fields)[number]) =>
      field.getAttribute('value') ?? field.querySelector('option[selected]')?.textContent ?? field.textContent;
    const empty = fields.filter((field) => field.hasAttribute('required') && shownIn(field) === '').map(({ id }) => id);
    expect(fields.length).toBeGreaterThan(60);
    expect(empty).toEqual([]);
    expect(fields.filter((field) => /^(string|null)$/.test(shownIn(field) ?? '')).map(({ id }) => id)).toEqual([]);
  });

  test('leaves out, in a form without scripts, what a browser would send empty', async () => {
    const document = await wholePage();
    const sent = [...document.querySelectorAll('.try input:not([disabled])')];
    expect(sent.filter((field) => field.getAttribute('value') === '').map(({ id }) => id)).toEqual([]);
    const free = document.querySelector('#freeFeesEstimate form');
    expect([free?.getAttribute('action'), free?.getAttribute('method')]).toEqual(['/v1/fees/estimate', 'get']);
    expect(free?.hasAttribute('hidden')).toBe(false);
  });

  test('finds routes by their words on the server too', async () => {
    const found = async (q: string) =>
      [...(await page(`/docs?q=${q}`)).querySelectorAll('details.op')].map(({ id }) => id);
    expect(await found('paid/domains+dns')).toEqual(['paidDomainsDns']);
    expect(await found('chain/WALLET')).toEqual(['paidChainWallet', 'lightningChainWallet']);
    expect(await found('qwzrk')).toEqual([]);
    expect((await app.inject('/docs?q=%3Cscript%3E')).body).toContain('<q>&lt;script&gt;</q>');
  });

  test('explains for how long a payment may be valid, and that the stock client signs for it', async () => {
    const text = (await wholePage()).querySelector('#notes')?.textContent ?? '';
    expect(text).toContain('604900');
    expect(text).toMatch(/does not offer the Gateway now/);
    expect(text).toMatch(/stock client signs for the whole of it/);
  });

  test('says that an error may have charged, and names the terms of each rail', async () => {
    const text = ((await wholePage()).querySelector('#notes')?.textContent ?? '').replaceAll('\n', ' ');
    expect(text).not.toContain('every other status but 200 costs nothing');
    expect(text).toContain(
      'An error says in charged whether the payment was taken (below). A 402 took nothing for its request.',
    );
    expect(text).toContain(
      'On USDC routes it is 604900: a week and 100 seconds. Over Lightning it is the invoice’s 300 seconds.',
    );
    expect(text).toContain('Every error is a problem document (RFC 9457), except a 402 outside /v1/mpp:');
    expect(text).toContain('After a settlement that moved no money it pays for the same call alone.');
  });

  test('is made once, is not sent again to a client that has it, and answers GET and HEAD only', async () => {
    const { headers } = await app.inject('/docs');
    const again = await app.inject({ url: '/docs', headers: { 'if-none-match': String(headers.etag) } });
    expect([again.statusCode, again.body]).toEqual([304, '']);
    const small = await app.inject({ url: '/docs', headers: { 'accept-encoding': 'br' } });
    expect(small.rawPayload.length).toBeLessThan(60_000);
    const head = await app.inject({ method: 'HEAD', url: '/docs' });
    expect([head.statusCode, head.body]).toEqual([200, '']);
    const { statusCode, headers: refused } = await app.inject({ method: 'POST', url: '/docs' });
    expect([statusCode, refused.allow]).toEqual([405, 'GET, HEAD, OPTIONS']);
  });
});
