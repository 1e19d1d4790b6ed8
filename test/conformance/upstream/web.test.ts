import { AjvJsonSchemaValidator } from '@modelcontextprotocol/sdk/validation/ajv';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { ConfigError, loadConfig } from '../../../src/config.ts';
import { priceOf } from '../../support/prices.ts';
import { call, type Service, startService } from '../../support/service/service.ts';
import { until } from '../../support/service/workers.ts';
import { type Replay, startReplay } from '../../support/upstream/replay.ts';
import { buyOnce } from '../../support/usdc/buyer.ts';

// The two routes as a buyer sees them: the mounted service, paid on the embedded network, over pages on loopback with names of their own.

const HTML = { 'content-type': 'text/html; charset=utf-8', 'x-frame-options': 'DENY' };
const PAGE = `<html lang="en"><head><title>A page</title></head><body><h1>Hello</h1><p>${'Words. '.repeat(60)}</p></body></html>`;

let network: EmbeddedNetwork;
let pages: Replay;
let service: Service;
/** The same with a short time-out, for pages that are silent or slow. */
let hasty: Service;
beforeAll(async () => {
  pages = await startReplay({
    '/page': { headers: HTML, body: PAGE },
    '/moved': { status: 301, headers: { location: '/page' } },
    '/inside': { status: 302, headers: { location: 'http://169.254.169.254/latest/meta-data/' } },
    '/file.pdf': { headers: { 'content-type': 'application/pdf' }, body: '%PDF' },
  });
  network = await startEmbeddedNetwork();
  const hosts = ['good.example', 'limited.example', 'first.example'].map((name) => `${name}=127.0.0.1:${pages.port}`);
  const env = { ALLOW_TEST_HOSTS: hosts.join(), WEB_HOST_PER_MINUTE: '40' };
  service = await startService(network, { env });
  hasty = await startService(network, { env: { ...env, WEB_TIMEOUT_MS: '1000', COLLECTOR: 'off' } });
  // A busy machine may load the thread that reads pages too slowly, which costs only the page that it was started for.
  const first = extract('http://first.example/page');
  await until('a page is read', async () => (await buy(first)).answer.status === 200);
});
afterAll(async () => {
  await hasty?.stop();
  await service?.stop();
  await network?.stop();
  await pages?.stop();
});
beforeEach(() => pages.setFault(null));

const extract = (url: string) => `/v1/paid/web/extract?url=${encodeURIComponent(url)}`;
const check = (url: string) => `/v1/paid/web/check?url=${encodeURIComponent(url)}`;

const buy = (path: string, seller = service) => buyOnce(network, seller.origin, path);

describe('a call that is answered', () => {
  test('web/extract follows the redirect and gives the text of the page', async () => {
    const { answer, body, paid, transfers } = await buy(extract('http://good.example/moved'));
    expect([answer.status, paid, transfers]).toEqual([200, priceOf('/web/extract').units, 1]);
    expect(body).toMatchObject({
      url: 'http://good.example/moved',
      finalUrl: 'http://good.example/page',
      status: 200,
      contentType: 'text/html',
      charset: 'utf-8',
      title: 'A page',
      description: null,
      language: 'en',
      headings: [{ level: 1, text: 'Hello' }],
      truncated: false,
      source: { name: 'good.example', url: 'http://good.example/page', retrievedAt: expect.any(Number) },
    });
    expect(body.characters).toBe(body.text.length);
  });

  test('web/check follows the redirect and shows status, timings and security headers', async () => {
    const { answer, body, paid, transfers } = await buy(check('http://good.example/moved'));
    expect([answer.status, paid, transfers]).toEqual([200, priceOf('/web/check').units, 1]);
    expect(body).toMatchObject({
      finalUrl: 'http://good.example/page',
      status: 200,
      up: true,
      redirects: [{ url: 'http://good.example/moved', status: 301, latencyMs: expect.any(Number) }],
      tls: null,
      timings: { tlsMs: null, firstByteMs: expect.any(Number) },
      measuredFrom: service.origin,
    });
    expect(body.securityHeaders.present).toEqual([{ name: 'x-frame-options', value: 'DENY', judgement: 'good' }]);
  });

  test('web/check is paid for a page that is down, because that is the answer', async () => {
    await pages.setFault('500');
    const { answer, body, paid } = await buy(check('http://good.example/page'));
    expect([answer.status, paid, body.status, body.up]).toEqual([200, priceOf('/web/check').units, 500, false]);
  });
});

describe('a call that fails', () => {
  test('web/check of a host that is down says so, and is never charged', async () => {
    await pages.setFault('reset');
    const { answer, body, paid, transfers } = await buy(check('http://good.example/page'));
    expect([answer.status, body.code, body.charged, paid, transfers]).toEqual([502, 'upstream_failed', false, 0n, 0]);
    expect(body).toMatchObject({
      up: false,
      reason: 'the connection was lost',
      phase: 'request',
      url: 'http://good.example/page',
      timings: { connectMs: expect.any(Number), tlsMs: null, firstByteMs: expect.any(Number) },
      tls: null,
      certificateError: null,
      measuredFrom: service.origin,
    });
    const ajv = new AjvJsonSchemaValidator();
    const { components } = JSON.parse((await call(service.origin, '/openapi.json')).body);
    const valid = ajv.getValidator({ ...components.schemas.PaidWebCheckProblem, components } as never);
    expect([valid(body).valid, valid({ ...body, phase: 'lunch' }).valid]).toEqual([true, false]);
  });

  test.each([
    ['a private address', extract('http://127.0.0.1/'), 400, 'url_not_public'],
    ['a private name', check('http://localhost/'), 400, 'url_not_public'],
    ['a redirect to a private address', extract('http://good.example/inside'), 400, 'url_not_public'],
    ['a scheme other than HTTP', check('ftp://good.example/'), 400, 'url_not_public'],
    ['a port other than the scheme’s', check('http://good.example:8080/'), 400, 'url_not_public'],
    ['a text that is no URL', extract('good.example/page'), 400, 'bad_parameter'],
    ['a URL that is too long', extract(`http://good.example/${'p'.repeat(2048)}`), 400, 'bad_parameter'],
    ['a page that does not exist', extract('http://good.example/gone'), 404, 'page_not_found'],
    ['a file that is no page', extract('http://good.example/file.pdf'), 502, 'upstream_failed'],
  ])('for %s is never charged', async (_what, path, status, code) => {
    const { answer, body, paid, transfers } = await buy(path);
    expect([answer.status, body.code, body.charged, paid, transfers]).toEqual([status, code, false, 0n, 0]);
  });

  test.each(['refused', 'reset', 'time-out', 'slow-body', 'huge', 'encoding-lie'] as const)(
    'for a page that fails (%s) is never charged',
    async (fault) => {
      await pages.setFault(fault);
      const seller = fault === 'time-out' || fault === 'slow-body' ? hasty : service;
      const { answer, body, paid, transfers } = await buy(extract('http://good.example/page'), seller);
      expect([answer.status, body.code, body.charged, paid, transfers]).toEqual([502, 'upstream_failed', false, 0n, 0]);
      expect(body.detail).toMatch(/^good\.example: /);
    },
  );

  test('beyond the limit of requests to one host is never charged', async () => {
    const { web } = service.deps.sources;
    const signal = new AbortController().signal;
    for (let call = 0; call < 40; call++) await web.check('http://limited.example/page', signal);
    const { answer, body, paid } = await buy(check('http://limited.example/page'));
    expect([answer.status, body.code, body.charged, paid]).toEqual([429, 'host_limited', false, 0n]);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(0);
  });
});

test('production refuses to start with hosts that bypass the address guard', () => {
  const env = {
    NETWORK: 'arc',
    SELLER_ADDRESS: `0x${'5e'.repeat(20)}`,
    RELAYER_PRIVATE_KEY: `0x${'1'.repeat(64)}`,
  };
  const allowed = { ...env, ALLOW_TEST_HOSTS: 'a.example=127.0.0.1:80' };
  expect(loadConfig(allowed).web.testHosts.get('a.example')).toEqual({ address: '127.0.0.1', port: 80 });
  const production = { ...allowed, NODE_ENV: 'production', PUBLIC_ORIGIN: 'https://us.example' };
  expect(() => loadConfig(production)).toThrow(ConfigError);
  expect(() => loadConfig(production)).toThrow('ALLOW_TEST_HOSTS');
  expect(() => loadConfig({ ...production, ALLOW_TEST_HOSTS: '' })).not.toThrow();
  for (const wrong of ['a.example', 'localhost=127.0.0.1:80', 'a.example=b.example:80', 'a.example=127.0.0.1']) {
    expect(() => loadConfig({ ...env, ALLOW_TEST_HOSTS: wrong })).toThrow('ALLOW_TEST_HOSTS');
  }
});
