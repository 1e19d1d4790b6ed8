import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { AppError, TooMany, UpstreamFailed } from '../../src/errors.ts';
import { createTestApp } from './harness.ts';

type App = Awaited<ReturnType<typeof createTestApp>>;

let t: App;
beforeAll(async () => {
  t = await createTestApp({
    extra(app) {
      app.post('/t/body', async (request) => ({ got: request.body }));
      app.get('/t/bug', async () => {
        throw new TypeError('the password is hunter2');
      });
      app.get('/t/text', async () => {
        throw 'a string, thrown';
      });
      app.get('/t/upstream', async () => {
        throw new UpstreamFailed('the source', 'no answer', new Error('cause of it'));
      });
      app.get('/t/expected', async () => {
        throw new AppError(500, 'selftest_failed', 'fails on purpose', { isExpected: true });
      });
      app.get('/t/unknown', async (_request, reply) => {
        reply.header('etag', '"stale"').header('cache-control', 'public, max-age=99');
        throw new AppError(503, 'settlement_unknown', 'ask again', {
          charged: 'unknown',
          retryAfterSeconds: 1.2,
          headers: { 'x-extra': 'kept' },
        });
      });
      app.get('/t/many', async () => {
        throw new TooMany('payer_limit', 'slow down', 0);
      });
    },
  });
});
afterAll(() => t.app.close());

const json = (payload: string) => ({
  method: 'POST' as const,
  url: '/t/body',
  headers: { 'content-type': 'application/json' },
  payload,
});

const CASES = [
  ['no route', { url: '/nope?secret=1' }, 404, 'no_such_route'],
  ['another letter case', { url: '/V1/chain/count' }, 404, 'no_such_route'],
  ['a doubled slash', { url: '/v1//chain/count' }, 404, 'no_such_route'],
  ['a trailing slash', { url: '/v1/chain/count/' }, 404, 'no_such_route'],
  ['a semicolon', { url: '/v1/chain/count;n=1' }, 404, 'no_such_route'],
  ['a URL that cannot be decoded', { url: '/v1/%zz' }, 400, 'malformed_url'],
  ['a URL past the cap', { url: `/v1/chain/count?x=${'a'.repeat(8200)}` }, 414, 'url_too_long'],
  ['a bad parameter', { url: '/v1/chain/count?n=x' }, 400, 'bad_parameter'],
  ['an unserved method', { method: 'DELETE', url: '/v1/chain/count' }, 405, 'method_not_allowed'],
  ['a body past the cap', json(JSON.stringify('a'.repeat(65_600))), 413, 'body_too_large'],
  ['a body that is no JSON', json('{'), 400, 'invalid_json'],
  ['an empty body', json(''), 400, 'invalid_json'],
  ['another media type', { ...json('<a/>'), headers: { 'content-type': 'text/xml' } }, 415, 'unsupported_media_type'],
  ['a bug', { url: '/t/bug' }, 500, 'internal'],
  ['something thrown that is no error', { url: '/t/text' }, 500, 'internal'],
  ['a failing source', { url: '/t/upstream' }, 502, 'upstream_failed'],
  ['a settlement without an answer', { url: '/t/unknown' }, 503, 'settlement_unknown'],
] as const;

describe('every failure is a problem', () => {
  it.each(CASES)('%s', async (_name, request, status, code) => {
    const answer = await t.app.inject({ method: 'GET', ...request });
    expect(answer.statusCode).toBe(status);
    expect(answer.headers['content-type']).toBe('application/problem+json; charset=utf-8');
    expect(answer.headers['cache-control']).toBe('no-store');
    expect(answer.headers['access-control-allow-origin']).toBe('*');
    const body = answer.json();
    expect(body).toMatchObject({ type: 'about:blank', status, code, requestId: answer.headers['x-request-id'] });
    expect(body.charged).toBe(code === 'settlement_unknown' ? 'unknown' : false);
    expect(body.title).toMatch(/^[A-Z]/);
    expect(body.detail).toMatch(/\w/);
    expect(body.instance).not.toContain('?');
    expect(body.instance.length).toBeLessThanOrEqual(256);
  });

  it('a valid request gets no problem', async () => {
    const answer = await t.app.inject({ ...json('{"a":1}') });
    expect([answer.statusCode, answer.json()]).toEqual([200, { got: { a: 1 } }]);
    expect(answer.headers['x-request-id']).toMatch(/./);
  });
});

describe('the content of a problem', () => {
  it('names each bad parameter', async () => {
    const { errors } = (await t.app.inject('/v1/chain/count?n=77')).json();
    expect(errors).toEqual([{ path: 'n', message: 'a whole number from 1 to 9' }]);
  });

  it('has no detail of a bug, and the log has all of it', async () => {
    const answer = await t.app.inject('/t/bug');
    expect(answer.body).not.toContain('hunter2');
    const line = t.lines.find(({ requestId, err }) => requestId === answer.headers['x-request-id'] && err);
    expect(JSON.stringify(line)).toMatch(/hunter2.*problems\.test\.ts/);
  });

  it('a failure that was asked for is no warning', async () => {
    const answer = await t.app.inject('/t/expected');
    const line = t.lines.find((one) => one.requestId === answer.headers['x-request-id'] && one.code);
    expect(line).toMatchObject({ level: 'info', code: 'selftest_failed', msg: 'a request failed' });
  });

  it('a failing source is logged with its cause, not as a bug', async () => {
    const answer = await t.app.inject('/t/upstream');
    const line = t.lines.find(({ requestId, code }) => requestId === answer.headers['x-request-id'] && code);
    expect(line).toMatchObject({ level: 'warn', code: 'upstream_failed', err: { message: 'cause of it' } });
  });

  it('drops the headers that the failed answer had set, and keeps those of the error', async () => {
    const { headers } = await t.app.inject('/t/unknown');
    expect(headers.etag).toBeUndefined();
    expect(headers).toMatchObject({ 'x-extra': 'kept', 'retry-after': '2' });
  });

  it('never says to retry after zero seconds', async () => {
    expect((await t.app.inject('/t/many')).headers['retry-after']).toBe('1');
  });
});

describe('request ids', () => {
  it('are on every answer, made by us, and never repeat', async () => {
    const urls = ['/v1/chain/count', '/v1/paid/chain/thing', '/nope', '/v1/%zz', '/livez', '/v1/paid'];
    const answers = await Promise.all(urls.map((url) => t.app.inject({ url, headers: { 'x-request-id': 'forged' } })));
    const ids = answers.map(({ headers }) => String(headers['x-request-id']));
    expect(new Set(ids).size).toBe(urls.length);
    for (const id of ids) expect(id).toMatch(/^[\w-]{12}-[0-9a-z]+$/);
  });

  it('share no prefix between two instances', async () => {
    const other = await createTestApp();
    const [one, two] = await Promise.all([t.app.inject('/livez'), other.app.inject('/livez')]);
    expect(String(one.headers['x-request-id']).slice(0, 12)).not.toBe(String(two.headers['x-request-id']).slice(0, 12));
    await other.app.close();
  });
});
