import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { openChainDatabase } from '../../src/collector/store/database.ts';
import type { ListedEntry } from '../../src/discovery/entry.ts';
import { putBlocks } from '../support/chain/chain-rows.ts';
import { openTestLedger, storesOf } from '../support/ledger/fresh-ledger.ts';
import { reservation } from '../support/ledger/ledger-rows.ts';
import { type Service, serviceWith } from '../support/service/service.ts';
import { ENV } from './harness.ts';

// The whole service, over a chain that is not reachable and files that hold the data of the pages.

const PAGES = ['/', '/market', '/market?q=fees', '/market?maxPriceUsd=x', '/status', '/docs', '/terms'];
const EVIL = `"><script>alert(1)</script><img src=x onerror='alert(2)'>`;
const HOUR_MS = 3_600_000;

/** A listing as a hostile seller might write it. No part of it may become markup on a page. */
const evilEntry: ListedEntry = {
  url: `https://evil.example/"onmouseover="alert(3)`,
  method: 'GET',
  priceUsd: '0.002',
  name: EVIL,
  label: EVIL,
  description: `fees ${EVIL}`,
  params: [{ name: EVIL, in: 'query', type: 'string', description: EVIL, required: true, example: EVIL }],
  payTo: EVIL,
  host: EVIL,
  network: 'eip155:5042',
  rail: 'direct',
  direct: null,
  body: null,
  source: 'market',
  category: EVIL,
  site: 'javascript:alert(4)',
  networks: [],
  plainNetworks: [],
};

async function fill(folder: string, nowMs: number): Promise<void> {
  const chain = openChainDatabase(join(folder, 'chain.db'));
  const now = Math.floor(nowMs / 1000);
  putBlocks(chain, [
    { number: 41, at: now - 100, baseFee: 21_000_000_000 },
    { number: 42, at: now - 1, baseFee: 23_456_000_000 },
  ]);
  chain.close();
  const ledger = openTestLedger(join(folder, 'ledger.db'));
  const listing = JSON.stringify({ entry: evilEntry, keywords: EVIL });
  const calls = {
    checkedAt: nowMs,
    pricedAt: nowMs,
    dueAt: nowMs + HOUR_MS,
    failures: 1,
    offlineAt: null,
    reason: EVIL,
  };
  const row = { place: 'evil.example/', domain: 'evil.example', listing, method: 'GET', ...calls } as const;
  await storesOf(ledger).market.put(row, 12, { total: 9, perDomain: 9 });
  const run = { at: nowMs, ok: false, latencyMs: 1500, transaction: Buffer.alloc(32, 0xab), notCharged: false };
  await storesOf(ledger).selfTests.record({ ...run, reason: 'charged' }, 0);
  const payments = storesOf(ledger).payments;
  await payments.reserve(reservation('p1', 'p1', { contract: Buffer.from(ENV.USDC_ADDRESS.slice(2), 'hex') }), 0, null);
  await payments.move('p1', ['reserved'], 'settling', {});
  await payments.move('p1', ['settling'], 'settled', { endedAt: nowMs, transaction: run.transaction, block: 7 });
  await storesOf(ledger).refusals.add(nowMs - 2 * HOUR_MS, new Map([['expired', 12_345]]), 0);
  ledger.close();
}

let folder: string;
let service: Service;
const get = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  service.get(path, { method, headers });
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'percall-pages-'));
  await fill(folder, Date.now());
  service = await serviceWith({ ...ENV, COLLECTOR: 'off' }, { dataDir: folder });
});
afterAll(async () => {
  await service.stop();
  rmSync(folder, { recursive: true, force: true });
});

describe.each(PAGES)('%s', (path) => {
  test('is a page that may load from and request its own origin only', async () => {
    const { status, headers, body } = await get(path);
    expect(status).toBe(path.includes('=x') ? 400 : 200);
    expect(headers).toMatchObject({
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
      'x-content-type-options': 'nosniff',
      'referrer-policy': 'no-referrer',
      'cache-control': 'no-cache',
    });
    expect(headers['set-cookie']).toBeUndefined();
    expect(body).toMatch(/^<!doctype html>\n<html lang="en">/);
    for (const [tag] of body.matchAll(/<(script|link|img)\b[^>]*>/g)) {
      expect(tag).toMatch(/(src|href)="\/assets\/[\w.-]+"/);
    }
  });

  test('holds no inline script, style or handler, and no id twice', async () => {
    const { body } = await get(path);
    expect(body.match(/<script(?![^>]* src=)/)).toBeNull();
    expect(body.match(/<style|<[^>]*\s(style|on\w+)=/i)).toBeNull();
    expect(body).not.toContain('javascript:');
    const ids = [...body.matchAll(/ id="([^"]*)"/g)].map(([, id]) => id);
    expect(ids.length).toBeGreaterThan(3);
    expect(ids).toEqual([...new Set(ids)]);
  });

  test('has a heading of the first level, and every reference to an id resolves', async () => {
    const { body } = await get(path);
    expect(body.match(/<h1/g)).toHaveLength(1);
    for (const [, ids] of body.matchAll(/ (?:aria-labelledby|aria-describedby|for)="([^"]*)"/g)) {
      for (const id of `${ids}`.split(' ')) expect(body).toContain(` id="${id}"`);
    }
    for (const [, id] of body.matchAll(/ href="#([^"]+)"/g)) expect(body).toContain(` id="${id}"`);
  });

  test('has no dead link', async () => {
    const { body } = await get(path);
    const own = [...body.matchAll(/(?:href|src|action)="(\/[^"#]*)/g)].map(([, to]) => `${to}`);
    for (const to of new Set(own)) expect([to, (await get(to)).status]).not.toEqual([to, 404]);
  });
});

describe('a page', () => {
  test('answers HEAD with the same headers and no body, and no other method', async () => {
    for (const path of ['/', '/market', '/status']) {
      const head = await get(path, {}, 'HEAD');
      expect([head.status, head.body, head.headers['content-type']]).toEqual([200, '', 'text/html; charset=utf-8']);
      expect(Number(head.headers['content-length'])).toBeGreaterThan(1000);
      for (const method of ['POST', 'PUT', 'DELETE', 'PATCH']) {
        const refused = await get(path, {}, method);
        expect([refused.status, refused.headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS']);
        expect(JSON.parse(refused.body).code).toBe('method_not_allowed');
      }
    }
  });

  test('is compressed for clients that accept it, and not sent again to a client that has it', async () => {
    const plain = await get('/market');
    expect(plain.headers.vary).toBe('accept-encoding');
    expect(plain.headers['content-encoding']).toBeUndefined();
    const small = await get('/market', { 'accept-encoding': 'gzip, br' });
    expect(small.headers['content-encoding']).toBe('br');
    expect(Number(small.headers['content-length'])).toBeLessThan(plain.body.length / 2);
    const { etag } = small.headers;
    const held = { 'accept-encoding': 'br', 'if-none-match': `W/"other", ${etag}` };
    const again = await get('/market', held);
    expect([again.status, again.body, again.headers.etag]).toEqual([304, '', etag]);
    expect((await get('/market', { 'if-none-match': `${etag}` })).status).toBe(200);
    expect((await get('/market?q=fees', held)).status).toBe(200);
  });

  const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8';
  const UNKNOWN = ['/index.html', '/markets', '/assets', '/assets/x.css', '/assets/..%2fassets.ts', '/v1/payments/x'];

  test.each(['*/*', 'application/json', 'application/json, text/html', 'text/html;q=0', undefined])(
    'leaves every unknown path a problem in JSON for a client that accepts %s',
    async (accept) => {
      for (const path of UNKNOWN) {
        const { status, headers, body } = await get(path, accept === undefined ? {} : { accept });
        expect([path, status, headers['content-type']]).toEqual([path, 404, 'application/problem+json; charset=utf-8']);
        expect(JSON.parse(body).charged).toBe(false);
      }
    },
  );

  test('an unknown path is a page for a browser, under the policy of all pages, and names nothing of the request as markup', async () => {
    for (const path of [...UNKNOWN, '/<script>alert(1)</script>']) {
      const { status, headers, body } = await get(path, { accept: BROWSER });
      expect([path, status, headers['content-type']]).toEqual([path, 404, 'text/html; charset=utf-8']);
      expect(headers).toMatchObject({ 'cache-control': 'no-store', vary: 'accept' });
      expect(headers['content-security-policy']).toContain("default-src 'none'");
      expect(body).toContain('<h1>Not found</h1>');
      expect(body).not.toContain('<script>alert');
    }
    const posted = await get('/markets', { accept: BROWSER }, 'POST');
    expect([posted.status, posted.headers['content-type']]).toEqual([404, 'application/problem+json; charset=utf-8']);
    expect((await get('/v1/fees/estimate?gas=x', { accept: BROWSER })).headers['content-type']).toContain(
      'problem+json',
    );
  });

  test('a payment is a receipt for a browser and JSON for everyone else, kept by no cache', async () => {
    const path = `/v1/payments/0x${'ab'.repeat(32)}`;
    const page = await get(path, { accept: BROWSER });
    expect([page.status, page.headers['content-type']]).toEqual([200, 'text/html; charset=utf-8']);
    expect(page.headers['content-security-policy']).toContain("default-src 'none'");
    expect(page.body).toContain('<strong>0.0005 USDC</strong>');
    for (const accept of ['*/*', 'application/json', 'application/json, text/html']) {
      const json = await get(path, { accept });
      expect(JSON.parse(json.body).payments).toMatchObject([{ rail: 'usdc', amount: '500', state: 'settled' }]);
      for (const { headers } of [page, json])
        expect(headers).toMatchObject({ 'cache-control': 'no-store', vary: 'accept' });
    }
  });

  test('a page is found with a slash behind its name too', async () => {
    for (const path of ['/docs', '/market', '/status', '/terms']) {
      const { status, headers } = await get(`${path}/?q=a`);
      expect([path, status, headers.location]).toEqual([path, 308, `${path}?q=a`]);
    }
  });

  test('browsers, crawlers and previews find their files by name', async () => {
    const icon = await get('/favicon.ico');
    expect([icon.status, icon.headers['content-type']]).toEqual([200, 'image/x-icon']);
    const robots = await get('/robots.txt');
    expect([robots.status, robots.headers['content-type']]).toEqual([200, 'text/plain; charset=utf-8']);
    for (const prefix of ['paid', 'lightning', 'mpp', 'payments'])
      expect(robots.body).toContain(`Disallow: /v1/${prefix}/\n`);
    const { body } = await get('/');
    const [, preview = ''] = /property="og:image" content="([^"]+)"/.exec(body) ?? [];
    expect(preview).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/preview\.png$/);
    expect((await get(new URL(preview).pathname)).headers['content-type']).toBe('image/png');
    for (const property of ['title', 'description', 'url', 'type']) expect(body).toContain(`property="og:${property}"`);
  });

  test('the footer leads to source, terms and contact as far as the operator names them', async () => {
    const footer = (body: string) => /<footer[\s\S]*<\/footer>/.exec(body)?.[0] ?? '';
    const plain = footer((await get('/')).body);
    expect(plain).toContain('href="/terms"');
    expect(plain).not.toMatch(/>(Source|Contact)</);
    const named = {
      SOURCE_URL: 'https://code.example/x',
      TERMS_URL: 'https://us.example/t',
      CONTACT_URL: 'mailto:a@us.example',
    };
    const other = await serviceWith({ ...ENV, ...named, COLLECTOR: 'off' }, {});
    const links = footer((await other.get('/terms')).body);
    for (const url of Object.values(named)) expect(links).toContain(`href="${url}"`);
    await other.stop();
  });
});

describe('an asset', () => {
  const assets = async () => [...new Set((await get('/')).body.match(/\/assets\/[\w.-]+/g) ?? [])];

  test('never changes under its name, is compressed, and may run no inline script either', async () => {
    const paths = await assets();
    expect(paths.length).toBeGreaterThan(5);
    for (const path of paths) {
      const { status, headers, body } = await get(path);
      expect([path, status, headers['cache-control']]).toEqual([path, 200, 'public, max-age=31536000, immutable']);
      expect(headers).toMatchObject({ vary: 'accept-encoding', 'x-content-type-options': 'nosniff' });
      expect(headers['content-security-policy']).toContain("default-src 'none'");
      expect(body.length).toBeGreaterThan(100);
      expect((await get(path, { 'if-none-match': `${headers.etag}` })).status).toBe(304);
      expect((await get(path, {}, 'POST')).status).toBe(405);
    }
  });

  test('has the same bytes in each encoding', async () => {
    const [path = ''] = (await assets()).filter((name) => name.includes('uplot') && name.endsWith('.js'));
    const raw = async (encoding: string) =>
      Buffer.from(
        await (await fetch(`${service.origin}${path}`, { headers: { 'accept-encoding': encoding } })).arrayBuffer(),
      );
    const plain = await raw('identity');
    expect(plain.length).toBeGreaterThan(40_000);
    // fetch decompresses. The compressed sizes are in the headers.
    expect(await raw('br')).toEqual(plain);
    expect(await raw('gzip')).toEqual(plain);
    const sizes = await Promise.all(['br', 'gzip'].map((one) => get(path, { 'accept-encoding': one }, 'HEAD')));
    for (const { headers } of sizes) expect(Number(headers['content-length'])).toBeLessThan(plain.length / 2);
  });
});

describe('a third party’s text', () => {
  test('is text on the market page, in the search and in the list', async () => {
    for (const path of ['/market', '/market?q=fees&source=market']) {
      const { body } = await get(path);
      expect(body).toContain('&quot;&gt;&lt;script&gt;alert(1)');
      expect(body).toContain('https://evil.example/&quot;onmouseover=&quot;alert(3)');
      expect(body).not.toMatch(/<script>|<img src=x|"onmouseover="/);
    }
  });

  test('is text in the form into which it was typed', async () => {
    const { body } = await get(`/market?q=${encodeURIComponent(EVIL)}&source=${encodeURIComponent(EVIL)}`);
    expect(body).toContain('value="&quot;&gt;&lt;script&gt;alert(1)');
    expect(body).not.toContain('<script>');
  });
});

describe('the content of the pages', () => {
  test('is what the free routes answer', async () => {
    const { baseFee } = JSON.parse((await get('/v1/fees')).body);
    expect(baseFee).toMatchObject({ gwei: '23.456', block: 42 });
    const { body } = await get('/');
    expect(body).toContain('data-value="23.456"');
    expect(body).toContain('Block 42.');
    expect(body).toMatch(/<td>21<\/td><td>21<\/td><td>21<\/td>/);
  });

  test('is "not known" rather than zero while no provider answers', async () => {
    const { body } = await get('/');
    const head = /<dt>Head block<\/dt><dd>(.*?)<\/dd>/.exec(body)?.[1];
    expect(head).toContain('not known');
    expect(/id="rpc-summary"[^>]*>(.*?)<\/p>/.exec(body)?.[1]).toContain('not known');
  });

  test('lists every priced route, and links only routes that answer without a payment', async () => {
    const { body } = await get('/');
    const { routes } = JSON.parse((await get('/v1/paid')).body) as { routes: { route: string; priceUsd: string }[] };
    expect(routes.length).toBeGreaterThan(19);
    for (const { route } of routes) expect(body).toContain(`<code>${route.replace('GET ', '')}</code>`);
  });

  test('shows on /status what settled today, which self-test failed, and what prevents a sale', async () => {
    const { body } = await get('/status');
    expect(body).toMatch(/id="settled-usdc">.*?>1<.*?>0\.0005 USDC</);
    expect(body).toMatch(/id="settled-lightning">.*?>0<.*?>0 sats</);
    expect(body).toContain('failed: charged');
    expect(body).toContain(`href="/v1/payments/0x${'ab'.repeat(32)}"`);
    expect(body).toMatch(/class="verdict bad">Priced calls cannot be served now \([\w ,]*USDC contract/);
    expect(body).toMatch(
      /Lightning<\/th><td class="good">no fault<\/td>.*?<td class="loose" data-label="Detail">no node configured/,
    );
  });
});

describe('the last thirty days on /status', () => {
  const offer = '/v1/paid/rpc/health';

  test('have charts of calls and revenue, and count a call that was refused just now', async () => {
    const refused = await get(offer, { 'payment-signature': 'AAAA' });
    expect(refused.status).toBe(402);
    // A page is kept for a second.
    const body = await vi.waitFor(
      async () => {
        const page = await get('/status');
        expect(page.body).toMatch(/<code>invalid_payload<\/code><\/th><td [^>]*>1<\/td>/);
        return page.body;
      },
      { timeout: 30_000, interval: 100 },
    );
    expect(body).toMatch(/<code>expired<\/code><\/th><td [^>]*>12,345<\/td>/);
    expect(body.match(/<figure class="chart"[^>]* data-step="day"/g)).toHaveLength(3);
    expect(body).toMatch(/id="revenue-summary" data-live><p class="now" data-value="0\.0005">/);
  });

  test('are hidden by STATUS_HISTORY=off, and refusals are counted for the day on which it is on again', async () => {
    const here = mkdtempSync(join(tmpdir(), 'percall-history-'));
    await fill(here, Date.now());
    const env = { ...ENV, COLLECTOR: 'off' };
    const off = await serviceWith({ ...env, STATUS_HISTORY: 'off' }, { dataDir: here });
    await off.get(offer, { headers: { 'payment-signature': 'AAAA' } });
    const { status, body } = await off.get('/status');
    await off.stop();
    expect([status, body]).toEqual([200, expect.stringContaining('id="settled-usdc"')]);
    expect(body).not.toMatch(/30 days|12,345|data-step="day"|Refused calls/);
    const on = await serviceWith(env, { dataDir: here });
    expect((await on.get('/status')).body.match(/data-label="Last 24 hours">(12,345|1)</g)).toHaveLength(2);
    await on.stop();
    rmSync(here, { recursive: true, force: true });
  });
});

test('pages share the rate limit of the free routes', async () => {
  const limited = await serviceWith({ ...ENV, COLLECTOR: 'off', RATE_LIMIT_FREE_PER_MINUTE: '3' }, {});
  const answers = [];
  for (const path of ['/', '/v1/paid', '/status', '/market']) answers.push(await limited.get(path));
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
  expect(JSON.parse(answers[3]?.body ?? '').code).toBe('rate_limited');
  await limited.stop();
});
