import { afterEach, describe, expect, it } from 'vitest';
import { z } from 'zod';
import { defineEndpoint, type Endpoint } from '../../src/catalogue/endpoint.ts';
import { UpstreamFailed } from '../../src/errors.ts';
import { countingEndpoint, createStillClock, createTestApp } from './harness.ts';

let t: Awaited<ReturnType<typeof createTestApp>>;
afterEach(() => t.app.close());

const URL = '/v1/chain/count';

describe('a free answer', () => {
  it('is kept for its time, then computed again', async () => {
    const clock = createStillClock();
    const { endpoint } = countingEndpoint();
    t = await createTestApp({ clock, catalogue: [endpoint] });
    const first = await t.app.inject(URL);
    expect(first.json()).toEqual({ n: 1, computed: 1 });
    expect(first.headers).toMatchObject({
      'cache-control': 'public, max-age=1',
      'content-type': 'application/json; charset=utf-8',
    });
    clock.now += 999;
    expect((await t.app.inject(URL)).json().computed).toBe(1);
    clock.now += 1;
    expect((await t.app.inject(URL)).json().computed).toBe(2);
  });

  it('is shared by all spellings of the same request, and differs for other parameters', async () => {
    const { endpoint, calls } = countingEndpoint();
    t = await createTestApp({ catalogue: [endpoint] });
    for (const query of ['', '?', '?n=1', '?n=%31', '?%6e=1', '?&n=1']) await t.app.inject(`${URL}${query}`);
    await t.app.inject('/v1/arc/count');
    expect(calls.count).toBe(1);
    expect((await t.app.inject(`${URL}?n=2`)).json()).toEqual({ n: 2, computed: 2 });
  });

  it('is computed once for all simultaneous callers', async () => {
    let release = () => {};
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    const { endpoint, calls } = countingEndpoint(() => held);
    t = await createTestApp({ catalogue: [endpoint], env: { RATE_LIMIT_FREE_PER_MINUTE: '0' } });
    const answers = Array.from({ length: 40 }, (_, at) =>
      t.app.inject(`${URL}${['', '?n=1', '?%6e=1', '?n=%31'][at % 4]}`),
    );
    await new Promise((resolve) => setTimeout(resolve, 20));
    release();
    for (const answer of await Promise.all(answers)) expect(answer.json()).toEqual({ n: 1, computed: 1 });
    expect(calls.count).toBe(1);
  });

  it('fails for all simultaneous callers, and is computed again for the next', async () => {
    let fail = true;
    const { endpoint, calls } = countingEndpoint(async () => {
      if (fail) throw new UpstreamFailed('the source', 'down');
    });
    t = await createTestApp({ catalogue: [endpoint] });
    const [one, two] = await Promise.all([t.app.inject(URL), t.app.inject(`${URL}?n=1`)]);
    expect([one.statusCode, two.statusCode, calls.count]).toEqual([502, 502, 1]);
    expect(one.headers.etag).toBeUndefined();
    fail = false;
    expect((await t.app.inject(URL)).statusCode).toBe(200);
  });

  it('ends after the handler time even when the endpoint does not', async () => {
    const { endpoint } = countingEndpoint(() => new Promise(() => {}));
    t = await createTestApp({ catalogue: [endpoint], env: { HANDLER_TIMEOUT_MS: '30' } });
    const answer = await t.app.inject(URL);
    expect([answer.statusCode, answer.json().code]).toEqual([503, 'source_timeout']);
  });

  it('that breaks its own schema is a bug of ours, not an answer', async () => {
    const endpoint = defineEndpoint({
      path: '/broken',
      access: 'free',
      label: 'Broken',
      summary: 'Answers another shape than it declares.',
      notFor: null,
      tags: null,
      ofChain: false,
      params: z.object({}),
      result: z.object({ n: z.int() }),
      example: { params: {}, result: { n: 1 } },
      run: async () => ({ n: 'one' }) as unknown as { n: number },
    }) as Endpoint<object>;
    t = await createTestApp({ catalogue: [endpoint] });
    expect((await t.app.inject('/v1/broken')).json()).toMatchObject({ status: 500, code: 'internal' });
  });
});

describe('a reply that can report a fault', () => {
  it('has 503 while it reports one, with its own body, and is never cached', async () => {
    let status = 'ok';
    const endpoint = defineEndpoint({
      path: '/news',
      access: 'free',
      label: 'News',
      summary: 'How it is.',
      notFor: null,
      tags: null,
      ofChain: false,
      params: z.object({}),
      result: z.strictObject({ status: z.string() }),
      reportsFault: (reply) => reply.status !== 'ok',
      example: { params: {}, result: { status: 'ok' } },
      run: async () => ({ status }),
    }) as Endpoint<object>;
    t = await createTestApp({ catalogue: [endpoint] });
    const ask = async (method: 'GET' | 'HEAD' = 'GET') => {
      const { statusCode, headers, body } = await t.app.inject({ method, url: '/v1/news' });
      expect(headers).toMatchObject({ 'cache-control': 'no-store', 'content-type': 'application/json; charset=utf-8' });
      expect(headers.etag).toBeUndefined();
      return [statusCode, headers['retry-after'], body];
    };
    expect(await ask()).toEqual([200, undefined, '{"status":"ok"}']);
    status = 'stalled';
    expect(await ask()).toEqual([503, '1', '{"status":"stalled"}']);
    expect(await ask('HEAD')).toEqual([503, '1', '']);
    status = 'ok';
    expect(await ask()).toEqual([200, undefined, '{"status":"ok"}']);
  });

  it('is a problem like any other when the endpoint itself fails', async () => {
    const failing = defineEndpoint({
      path: '/news',
      access: 'free',
      label: 'News',
      summary: 'How it is.',
      notFor: null,
      tags: null,
      ofChain: false,
      params: z.object({}),
      result: z.strictObject({}),
      reportsFault: () => true,
      example: { params: {}, result: {} },
      run: async () => {
        throw new UpstreamFailed('the source', 'down');
      },
    }) as Endpoint<object>;
    t = await createTestApp({ catalogue: [failing] });
    const answer = await t.app.inject('/v1/news');
    expect([answer.statusCode, answer.json().code]).toEqual([502, 'upstream_failed']);
  });
});

describe('ETag', () => {
  it('answers 304 to a client that has the same bytes, in any form of the header', async () => {
    t = await createTestApp();
    const { headers } = await t.app.inject(URL);
    const etag = String(headers.etag);
    expect(etag).toMatch(/^"[\w-]{27}"$/);
    for (const held of [etag, `W/${etag}`, `"other", ${etag}`, '*']) {
      const answer = await t.app.inject({ url: URL, headers: { 'if-none-match': held } });
      expect([held, answer.statusCode, answer.body]).toEqual([held, 304, '']);
      expect(answer.headers).toMatchObject({ etag, 'cache-control': 'public, max-age=1' });
      expect(answer.headers['x-request-id']).toBeDefined();
    }
  });

  it('answers in full to a client that has other bytes', async () => {
    t = await createTestApp();
    await t.app.inject(URL);
    const answer = await t.app.inject({ url: URL, headers: { 'if-none-match': '"other"' } });
    expect([answer.statusCode, answer.json().n]).toEqual([200, 1]);
  });
});

describe('HEAD', () => {
  it('has the same headers without the body', async () => {
    t = await createTestApp();
    const get = await t.app.inject(URL);
    const head = await t.app.inject({ method: 'HEAD', url: URL });
    expect([head.statusCode, head.body]).toEqual([200, '']);
    for (const name of ['etag', 'content-length', 'content-type', 'cache-control'])
      expect(head.headers[name]).toBe(get.headers[name]);
  });
});
