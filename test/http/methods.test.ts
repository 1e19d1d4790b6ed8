import { METHODS } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestApp } from './harness.ts';

let t: Awaited<ReturnType<typeof createTestApp>>;
beforeAll(async () => {
  t = await createTestApp({
    extra(app) {
      app.post('/t/:id', async () => ({}));
    },
  });
});
afterAll(() => t.app.close());

const OTHERS = METHODS.filter((method) => !['GET', 'HEAD', 'OPTIONS', 'CONNECT'].includes(method));
const PATHS = [
  '/v1/chain/count',
  '/v1/arc/count',
  '/v1/paid/chain/thing',
  '/v1/paid',
  '/openapi.json',
  '/livez',
  '/readyz',
  '/metrics',
];
const request = (method: string, url: string) => t.app.inject({ method: method as 'GET', url });

describe('other methods', () => {
  it.each(PATHS)('are refused on %s, all of them, before a body is read', async (url) => {
    for (const method of OTHERS) {
      const answer = await request(method, url);
      expect([method, answer.statusCode, answer.headers.allow]).toEqual([method, 405, 'GET, HEAD, OPTIONS']);
    }
    const withBody = await t.app.inject({ method: 'POST', url, headers: { 'content-type': 'text/xml' }, payload: '<' });
    expect(withBody.statusCode).toBe(405);
  });

  it('are refused on a pattern with a parameter, whatever its value', async () => {
    expect((await request('GET', '/t/anything')).headers.allow).toBe('POST, OPTIONS');
    expect((await t.app.inject({ method: 'POST', url: '/t/anything', payload: {} })).statusCode).toBe(200);
  });

  it('are refused on every spelling of a path that the router reads', async () => {
    for (const url of ['/t/a%20b', '/t/a?x=1', '/v1/chain/%63ount?n=x']) {
      const answer = await request('PROPFIND', url);
      expect([url, answer.statusCode, answer.json().code]).toEqual([url, 405, 'method_not_allowed']);
    }
    for (const url of ['/t/a/b', '/T/a', '/v1/chain/count/'])
      expect([url, (await request('PUT', url)).statusCode]).toEqual([url, 404]);
  });

  it('are counted under the pattern of the path', async () => {
    await request('DELETE', '/t/counted');
    const { body } = await request('GET', '/metrics');
    expect(body).toContain('http_requests_total{route="/t/:id",method="DELETE",status="405"}');
  });

  it('are 404 on an unknown path', async () => {
    expect((await request('POST', '/nope')).statusCode).toBe(404);
  });
});

describe('a preflight', () => {
  const headers = {
    origin: 'https://a.example',
    'access-control-request-method': 'GET',
    'access-control-request-headers': 'payment-signature',
  };

  const READABLE = PATHS.filter((path) => path !== '/metrics' && path !== '/readyz');
  it.each([...READABLE, '/t/x', '/nope'])('is answered on %s before any gate or limit', async (url) => {
    const answer = await t.app.inject({ method: 'OPTIONS', url, headers });
    expect([answer.statusCode, answer.body]).toEqual([204, '']);
    expect(answer.headers['access-control-allow-origin']).toBe('*');
    const allowed = String(answer.headers['access-control-allow-headers']).toLowerCase().split(', ');
    expect(allowed).toEqual(
      expect.arrayContaining([
        'content-type',
        'payment-signature',
        'x-payment',
        'access-control-expose-headers',
        'if-none-match',
      ]),
    );
    expect(answer.headers['ratelimit-limit']).toBeUndefined();
    expect(answer.headers['x-request-id']).toBeDefined();
  });

  it.each(['/metrics', '/readyz?x=1'])('allows nothing on %s, which no page may read', async (url) => {
    const answer = await t.app.inject({ method: 'OPTIONS', url, headers });
    expect([answer.statusCode, answer.body]).toEqual([204, '']);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
  });
});

describe('every answer', () => {
  it.each([...PATHS, '/v1/chain/count?n=x', '/v1/%zz', '/nope', '/facilitator/supported', '/v1/payments/x'])(
    'on %s tells browsers to take its type as it says',
    async (url) => {
      for (const method of ['GET', 'HEAD', 'POST', 'OPTIONS'])
        expect((await request(method, url)).headers['x-content-type-options'], method).toBe('nosniff');
    },
  );
});

describe('CORS', () => {
  it.each([
    ['/v1/chain/count', 200],
    ['/v1/paid/chain/thing', 402],
    ['/v1/chain/count?n=x', 400],
    ['/v1/%zz', 400],
    ['/nope', 404],
  ])('lets a page read %s (%i)', async (url, status) => {
    const { statusCode, headers } = await t.app.inject(url);
    expect(statusCode).toBe(status);
    expect(headers['access-control-allow-origin']).toBe('*');
    const exposed = String(headers['access-control-expose-headers']).split(', ');
    expect(exposed).toEqual(
      expect.arrayContaining([
        'PAYMENT-REQUIRED',
        'PAYMENT-RESPONSE',
        'X-Request-Id',
        'RateLimit-Limit',
        'Retry-After',
        'ETag',
      ]),
    );
    // Credentials would make "any origin" unsafe.
    expect(headers['access-control-allow-credentials']).toBeUndefined();
  });
});
