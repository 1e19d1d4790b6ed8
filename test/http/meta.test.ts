import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { afterEach, describe, expect, it } from 'vitest';
import { createTestApp, listen, pricedEndpoint, sendRaw } from './harness.ts';

const TOKEN = 'a-token-of-enough-length';
let t: Awaited<ReturnType<typeof createTestApp>>;
afterEach(() => t.app.close());

const metrics = (remoteAddress: string, headers: Record<string, string> = {}) =>
  t.app.inject({ url: '/metrics', remoteAddress, headers });

describe('/metrics', () => {
  it.each(['127.0.0.1', '127.1.2.3', '::1', '::ffff:127.0.0.1'])('is open to %s', async (address) => {
    t = await createTestApp();
    await t.app.inject('/v1/paid/chain/thing');
    await t.app.inject('/nope');
    const { statusCode, body } = await metrics(address);
    expect(statusCode).toBe(200);
    expect(body).toContain('http_requests_total{route="/v1/paid/chain/thing",method="GET",status="402"} 1');
    expect(body).toContain('http_requests_total{route="unmatched",method="GET",status="404"} 1');
    expect(body).toContain('http_request_duration_seconds_bucket{route="/v1/paid/chain/thing",le="+Inf"} 1');
    expect(body).toMatch(/^process_cpu_user_seconds_total /m);
  });

  it('does not exist for other machines when no token is set', async () => {
    t = await createTestApp();
    const answers = await Promise.all([
      metrics('192.0.2.1'),
      metrics('192.0.2.1', { authorization: 'Bearer ' }),
      metrics('192.0.2.1', { authorization: 'Bearer null' }),
    ]);
    for (const { statusCode, body } of answers) {
      expect(statusCode).toBe(404);
      expect(body).not.toContain('http_requests_total');
    }
  });

  it('does not treat a forwarded request as a local one, with or without a trusted proxy', async () => {
    t = await createTestApp({ env: { TRUSTED_PROXIES: '127.0.0.1' } });
    expect((await metrics('127.0.0.1', { 'x-forwarded-for': '192.0.2.1' })).statusCode).toBe(404);
    expect((await metrics('127.0.0.1', { 'x-forwarded-for': '127.0.0.1' })).statusCode).toBe(404);
    expect((await metrics('192.0.2.1', { 'x-forwarded-for': '127.0.0.1' })).statusCode).toBe(404);
  });

  it.each([
    ...['x-forwarded-for', 'forwarded', 'x-forwarded-proto', 'x-forwarded-host', 'x-real-ip', 'via'],
    ...['cf-connecting-ip', 'true-client-ip', 'fly-client-ip', 'x-client-ip', 'x-envoy-external-address', 'cdn-loop'],
  ])('is closed to a proxy on this machine, whatever header shows that it is one (%s)', async (name) => {
    t = await createTestApp();
    expect((await metrics('127.0.0.1', { [name]: 'x' })).statusCode).toBe(404);
    expect((await metrics('127.0.0.1')).statusCode).toBe(200);
  });

  it('asks everyone for the token once there is one', async () => {
    t = await createTestApp({ env: { METRICS_TOKEN: TOKEN } });
    const authorization = `Bearer ${TOKEN}`;
    for (const address of ['127.0.0.1', '::1', '192.0.2.1']) {
      expect((await metrics(address)).statusCode).toBe(404);
      expect((await metrics(address, { authorization, via: '1.1 proxy' })).statusCode).toBe(200);
    }
  });

  it.each(['localhost', 'LOCALHOST:4021', '127.0.0.1:4021', '127.9.9.9', '[::1]', '[::1]:4021'])(
    'is open without a token under the loopback name %s',
    async (host) => {
      t = await createTestApp();
      expect((await metrics('127.0.0.1', { host })).statusCode).toBe(200);
    },
  );

  it.each([
    'rebound.example',
    'rebound.example:4021',
    'localhost.evil.example',
    '127.0.0.1.evil.example',
    '[::2]',
    'x:',
  ])('is closed without a token under the name %s, which a page can point to this machine', async (host) => {
    t = await createTestApp();
    expect((await metrics('127.0.0.1', { host })).statusCode).toBe(404);
  });

  it('is closed without a token to a request without a Host', async () => {
    t = await createTestApp();
    expect(await sendRaw(await listen(t.app), 'GET /metrics HTTP/1.0\r\n\r\n')).toMatch(/^HTTP\/1\.1 404 /);
  });

  it.each(['http://localhost:4021', 'https://page.example', 'null'])(
    'is closed without a token to a page of %s',
    async (origin) => {
      t = await createTestApp();
      expect((await metrics('127.0.0.1', { origin })).statusCode).toBe(404);
    },
  );

  it.each(['/metrics', '/metric%73', '/readyz'])('lets no page of another origin read %s', async (url) => {
    t = await createTestApp();
    for (const method of ['GET', 'HEAD'] as const) {
      const { statusCode, headers } = await t.app.inject({ method, url });
      expect(statusCode).toBe(200);
      expect(Object.keys(headers).filter((name) => name.startsWith('access-control-'))).toEqual([]);
    }
    const refused = await t.app.inject({ url: '/metrics', headers: { origin: 'https://page.example' } });
    expect(refused.headers['access-control-allow-origin']).toBeUndefined();
  });

  it('asks every client for the token when a proxy is configured, because behind a proxy without a header each client comes from this machine', async () => {
    t = await createTestApp({ env: { TRUSTED_PROXIES: '192.0.2.7', METRICS_TOKEN: TOKEN } });
    expect((await metrics('127.0.0.1')).statusCode).toBe(404);
    expect((await metrics('127.0.0.1', { authorization: `Bearer ${TOKEN}` })).statusCode).toBe(200);
    await t.app.close();
    t = await createTestApp({ env: { TRUSTED_PROXIES: '192.0.2.7' } });
    expect((await metrics('127.0.0.1')).statusCode).toBe(404);
    expect((await metrics('127.0.0.1', { authorization: 'Bearer null' })).statusCode).toBe(404);
  });

  it('opens with the token, and with no similar one', async () => {
    t = await createTestApp({ env: { METRICS_TOKEN: TOKEN } });
    expect((await metrics('192.0.2.1', { authorization: `Bearer ${TOKEN}` })).statusCode).toBe(200);
    for (const authorization of [`Bearer ${TOKEN}x`, `Bearer ${TOKEN.slice(1)}`, `Basic ${TOKEN}`, TOKEN, '']) {
      expect((await metrics('192.0.2.1', { authorization })).statusCode).toBe(404);
    }
  });
});

describe('/livez and /readyz', () => {
  it('answer 200', async () => {
    t = await createTestApp();
    expect((await t.app.inject('/livez')).json()).toEqual({ status: 'ok' });
    const ready = await t.app.inject('/readyz');
    expect([ready.statusCode, ready.json()]).toEqual([200, { ready: true, checks: { store: { ok: true } } }]);
    expect(ready.headers['cache-control']).toBe('no-store');
  });

  it('differ: a process that is not ready is still alive', async () => {
    t = await createTestApp({
      readiness: async () => ({
        ready: false,
        failing: ['chain'],
        checks: { chain: { ok: false, detail: 'no provider' }, gateway: { ok: false }, store: { ok: true } },
      }),
    });
    expect((await t.app.inject('/livez')).statusCode).toBe(200);
    const answer = await t.app.inject('/readyz');
    expect(answer.statusCode).toBe(503);
    expect(answer.json()).toMatchObject({
      code: 'not_ready',
      charged: false,
      detail: 'Not ready: chain.',
      checks: { chain: { detail: 'no provider' } },
    });
  });
});

describe('the price list', () => {
  it('holds every priced route once, in USD and base units, and is no priced route itself', async () => {
    t = await createTestApp();
    const answer = await t.app.inject('/v1/paid');
    expect(answer.statusCode).toBe(200);
    expect(answer.json()).toEqual({
      scheme: 'exact',
      network: 'eip155:5042',
      networkName: 'chain 5042',
      playMoney: false,
      asset: `0x36${'0'.repeat(38)}`,
      payTo: `0x${'5e'.repeat(20)}`,
      currency: 'USD',
      routes: [
        {
          route: 'GET /v1/paid/chain/thing',
          priceUsd: '0.002',
          amount: '2000',
          label: 'Thing',
          summary: 'A thing.',
          freeSummary: null,
          params: [{ name: 'id', required: true, description: 'Which one' }],
        },
      ],
      source: {
        name: 'the price list of this service',
        url: 'http://127.0.0.1:4021/v1/paid',
        retrievedAt: 1_800_000_000,
      },
    });
    const again = await t.app.inject({ url: '/v1/paid', headers: { 'if-none-match': String(answer.headers.etag) } });
    expect(again.statusCode).toBe(304);
  });
});

describe('/openapi.json', () => {
  it('describes routes that exist, and is not sent again to a client that has it', async () => {
    t = await createTestApp();
    const answer = await t.app.inject('/openapi.json');
    const { paths, servers } = answer.json();
    const operations = Object.entries<object>(paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => ({ method: method.toUpperCase() as 'GET' | 'POST', url: path })),
    );
    expect(operations.length).toBe(22);
    for (const operation of operations) {
      const { body } = await t.app.inject(operation);
      expect(body, operation.url).not.toContain('no_such_route');
    }
    expect(servers).toEqual([{ url: 'http://127.0.0.1:4021' }]);
    const again = await t.app.inject({
      url: '/openapi.json',
      headers: { 'if-none-match': String(answer.headers.etag) },
    });
    expect([again.statusCode, again.body]).toEqual([304, '']);
  });

  it('is sent in the accepted encoding, with the same content, and with an ETag and a 304 of its own', async () => {
    t = await createTestApp();
    const asked = (accept: string, etag = '') =>
      t.app.inject({ url: '/openapi.json', headers: { 'accept-encoding': accept, 'if-none-match': etag } });
    const [br, gzip, plain, bare] = await Promise.all([
      asked('gzip, br'),
      asked('gzip'),
      asked('identity'),
      t.app.inject('/openapi.json'),
    ]);
    const all = [br, gzip, plain, bare];
    expect(all.map(({ headers }) => headers['content-encoding'])).toEqual(['br', 'gzip', undefined, undefined]);
    expect(JSON.stringify(JSON.parse(plain.body))).toBe(plain.body);
    for (const bytes of [brotliDecompressSync(br.rawPayload), gunzipSync(gzip.rawPayload), bare.rawPayload]) {
      expect(bytes.equals(plain.rawPayload)).toBe(true);
    }
    expect(br.rawPayload.length).toBeLessThan(plain.rawPayload.length / 4);
    for (const { headers } of all) {
      expect(headers).toMatchObject({
        'content-type': 'application/json; charset=utf-8',
        'cache-control': 'public, max-age=60',
        vary: 'accept-encoding',
      });
    }
    const tags = [br, gzip, plain].map(({ headers }) => String(headers.etag));
    expect(new Set(tags).size).toBe(3);
    const again = await asked('gzip, br', tags[0]);
    expect([again.statusCode, again.body, again.headers['content-encoding']]).toEqual([304, '', undefined]);
    expect((await asked('gzip', tags[0])).statusCode).toBe(200);
  });
});

describe('the documents for machines', () => {
  it('are made when they are asked for, and made again after they could not be made', async () => {
    let isBroken = false;
    const endpoint = Object.defineProperty({ ...pricedEndpoint }, 'freeSummary', {
      get: () => {
        if (isBroken) throw new Error('not this time');
      },
    });
    t = await createTestApp({ catalogue: [endpoint] });
    isBroken = true;
    expect((await t.app.inject('/v1/paid')).statusCode).toBe(500);
    isBroken = false;
    expect((await t.app.inject('/v1/paid')).json().routes).toHaveLength(1);
    // Kept from then on.
    isBroken = true;
    expect((await t.app.inject('/v1/paid')).statusCode).toBe(200);
  });

  const CONTENT = {
    '/openapi-priced.json': 'application/json; charset=utf-8',
    '/llms.txt': 'text/plain; charset=utf-8',
    '/SKILL.md': 'text/markdown; charset=utf-8',
    '/.well-known/api-catalog': 'application/linkset+json; profile="https://www.rfc-editor.org/info/rfc9727"',
    '/.well-known/agent-registration.json': 'application/json; charset=utf-8',
    '/.well-known/x402': 'application/json; charset=utf-8',
    '/.well-known/x402.json': 'application/json; charset=utf-8',
  };

  it.each(Object.entries(CONTENT))(
    '%s is served to GET and HEAD, and not again to a client that has it',
    async (url, type) => {
      t = await createTestApp();
      const answer = await t.app.inject(url);
      expect([answer.statusCode, answer.headers['content-type']]).toEqual([200, type]);
      expect(answer.headers['cache-control']).toBe('public, max-age=60');
      expect(answer.body).toMatch(/\/v1\/paid\/chain\/thing|\/SKILL\.md|- chain: thing 0\.002/);
      const head = await t.app.inject({ method: 'HEAD', url });
      expect([head.statusCode, head.body, head.headers.etag]).toEqual([200, '', answer.headers.etag]);
      const again = await t.app.inject({ url, headers: { 'if-none-match': String(answer.headers.etag) } });
      expect([again.statusCode, again.body]).toEqual([304, '']);
      const refused = await t.app.inject({ method: 'POST', url });
      expect([refused.statusCode, refused.headers.allow]).toEqual([405, 'GET, HEAD, OPTIONS']);
    },
  );

  it('names in llms.txt only addresses that exist', async () => {
    t = await createTestApp();
    const { body } = await t.app.inject('/llms.txt');
    const links = [...body.matchAll(/\]\((\/[^)]*)\)/g)].map(([, url]) => String(url));
    // The whole service mounts the tools server, which has its own tests.
    const here = links.filter((url) => url !== '/mcp');
    expect(here.length).toBe(9);
    for (const url of here) expect((await t.app.inject(url)).body, url).not.toContain('no_such_route');
  });

  it('have the proof for the MCP registry only where it is set', async () => {
    t = await createTestApp();
    const path = '/.well-known/mcp-registry-auth';
    expect((await t.app.inject(path)).statusCode).toBe(404);
    await t.app.close();
    const proof = `v=MCPv1; k=ed25519; p=${'A'.repeat(43)}=`;
    t = await createTestApp({ env: { MCP_REGISTRY_AUTH: proof } });
    const { statusCode, headers, body } = await t.app.inject(path);
    expect([statusCode, headers['content-type'], body]).toEqual([200, 'text/plain; charset=utf-8', `${proof}\n`]);
  });

  it('are one document under both names of the manifest, which names every document', async () => {
    t = await createTestApp();
    const [plain, json] = [await t.app.inject('/.well-known/x402'), await t.app.inject('/.well-known/x402.json')];
    expect(json.body).toBe(plain.body);
    const { documents, items } = plain.json();
    const urls = Object.values<string>(documents).filter((url) => !url.endsWith('/mcp'));
    expect(urls.length).toBe(6);
    for (const url of urls) expect((await t.app.inject(new URL(url).pathname)).statusCode, url).toBe(200);
    expect(items).toHaveLength(1);
    expect(items[0]).toMatchObject({ resource: 'http://127.0.0.1:4021/v1/paid/chain/thing', accepts: [{}] });
  });
});

describe('the log', () => {
  it('describes a request without its query or its payment', async () => {
    t = await createTestApp();
    await t.app.inject({ url: '/v1/paid/chain/thing?id=private', headers: { 'payment-signature': 'c2VjcmV0' } });
    const line = t.lines.find(({ path }) => path !== undefined);
    expect(line).toMatchObject({ route: '/v1/paid/chain/thing', path: '/v1/paid/chain/thing', method: 'GET' });
    expect(JSON.stringify(t.lines)).not.toMatch(/private|c2VjcmV0/);
  });

  it('has sales and failures at info, and the rest at debug only', async () => {
    t = await createTestApp({
      env: { LOG_LEVEL: 'info' },
      extra(app) {
        app.get('/t/sold', async (_request, reply) => reply.header('payment-response', 'e30=').send({}));
        app.get('/t/refused', async (_request, reply) => reply.code(402).header('payment-response', 'e30=').send({}));
        app.get('/t/failed', async (_request, reply) => reply.code(503).send({}));
      },
    });
    for (const url of ['/t/sold', '/t/refused', '/t/failed', '/livez', '/nope']) await t.app.inject(url);
    expect(t.lines.map(({ route, msg }) => [route, msg])).toEqual([
      ['/t/sold', 'sold'],
      ['/t/failed', 'failed'],
    ]);
  });
});

describe('start', () => {
  it('fails when a priced path is mounted without the gate, in any spelling', async () => {
    for (const url of ['/v1/paid/free-for-all', '/v1/PAID/x', '/v1/paid/:any']) {
      await expect(createTestApp({ extra: (app) => app.get(url, async () => ({})) })).rejects.toThrow(/has no gate/);
    }
    t = await createTestApp({ extra: (app) => app.get('/v1/paidless', async () => ({})) });
  });
});

describe('over a socket', () => {
  it('answers the absolute form of a URL as the path itself', async () => {
    t = await createTestApp();
    const port = await listen(t.app);
    const get = (target: string) => sendRaw(port, `GET ${target} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
    expect(await get('http://elsewhere.example/v1/paid/chain/thing')).toMatch(/^HTTP\/1\.1 402 /);
    expect(await get('http://elsewhere.example/livez')).toMatch(/^HTTP\/1\.1 200 /);
  });
});
