import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { z } from 'zod';
import { parseParams } from '../../../src/catalogue/params.ts';
import { unreachedMembers, webCheck, webExtract } from '../../../src/endpoints/web.ts';
import { AppError, NotFound } from '../../../src/errors.ts';
import { systemClock } from '../../../src/lib/clock.ts';
import { ExchangeFailed } from '../../../src/upstream/client/failure.ts';
import type { Resolve } from '../../../src/upstream/guard/guard.ts';
import { createPageReader, type PageReader } from '../../../src/upstream/web/page-reader.ts';
import { createWeb, type Web } from '../../../src/upstream/web/web.ts';
import { EXPIRED, type Fault, type Replay, startReplay, TEST_CA } from '../../support/upstream/replay.ts';

const signal = new AbortController().signal;
const html = { 'content-type': 'text/html', 'strict-transport-security': 'max-age=100' };
let replay: Replay;
let web: Web;
const pages = createPageReader({ workers: 1, loadMs: 120_000, parseMs: 120_000 });
const common = { clock: systemClock, userAgent: 'x', measuredFrom: 'https://us.example', hostPerMinute: 0 };
beforeAll(async () => {
  replay = await startReplay(
    {
      '/page': { headers: html, body: '<html lang=en><title>A page</title><p>Short.</p></html>' },
      '/unseen': { headers: html, body: '<p>&#8203;&#8205;&#173;</p>' },
      '/unseen.txt': { headers: { 'content-type': 'text/plain; charset=utf-8' }, body: '\u200b\u0001\u2060' },
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
  web = createWeb({ ...common, dial, timeoutMs: 60_000, pages });
});
afterEach(() => void vi.useRealTimers());
afterAll(async () => {
  await pages.close();
  await replay.stop();
});

/** The AppError of a check that fails; its members fit their description. */
async function failure(url: string, from: Web = web): Promise<AppError> {
  const failed = await webCheck.run({ url }, { web: from } as never, signal).then(
    () => new Error('it did not fail'),
    (error: unknown) => error,
  );
  if (!(failed instanceof AppError)) throw failed;
  z.strictObject(unreachedMembers.shape).parse(failed.members);
  return failed;
}

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
      tls: {
        protocol: 'TLSv1.3',
        issuer: 'percall tests',
        subject: 'good.example',
        validFrom: 1795203968,
        validTo: 4948803968,
        expiresInDays: expect.any(Number),
      },
      securityHeaders: { present: [{ name: 'strict-transport-security', judgement: 'weak' }] },
      measuredFrom: 'https://us.example',
      source: { name: 'www.good.example' },
    });
  });

  test('a redirect that leads nowhere is an answer, and counts as up', async () => {
    expect(await check('https://good.example/nowhere')).toMatchObject({ status: 302, up: true, redirects: [] });
  });

  test('a certificate for another name is a failure that says so, and shows the certificate', async () => {
    const reason = 'its TLS certificate is not valid (ERR_TLS_CERT_ALTNAME_INVALID)';
    expect(await failure('https://other.example/page')).toMatchObject({
      status: 502,
      message: `other.example: ${reason}`,
      charged: false,
      members: {
        up: false,
        reason,
        phase: 'tls',
        certificateError: 'ERR_TLS_CERT_ALTNAME_INVALID',
        tls: { subject: 'good.example', issuer: 'percall tests', validTo: 4948803968 },
        timings: { connectMs: expect.any(Number), tlsMs: expect.any(Number), firstByteMs: null },
      },
    });
  });

  test('the timings of a hop add up, and the days until the certificate expires are counted from now', async () => {
    const answer = await check('https://good.example/page');
    const { totalMs, ...steps } = answer.timings as Record<string, number>;
    const sum = Object.values(steps).reduce((total, step) => total + step, 0);
    expect(totalMs).toBeCloseTo(sum, 0);
    const { retrievedAt } = answer.source as { retrievedAt: number };
    expect(answer.tls).toMatchObject({ expiresInDays: Math.floor((4948803968 - retrievedAt) / 86_400) });
  });
});

describe('web/check of a host that does not answer', () => {
  const noHost: Resolve = async (host) => {
    throw new NotFound(`the host ${host} does not exist`, 'host_not_found');
  };
  /** A web whose host good.example is at this port. */
  function inWeb<T>(
    {
      port,
      ca = TEST_CA,
      timeoutMs = 60_000,
      resolve = noHost,
    }: { port: number; ca?: string; timeoutMs?: number; resolve?: Resolve },
    use: (from: Web) => Promise<T>,
  ): Promise<T> {
    const dial = { resolve, ca, testHosts: new Map([['good.example', { address: '127.0.0.1', port }]]) };
    return use(createWeb({ ...common, dial, timeoutMs, pages }));
  }
  /** The failure of a check against a server with this fault, or of another URL beside it. */
  async function faulty(fault: Fault, url = 'http://good.example/page'): Promise<AppError> {
    const server = await startReplay({ '/page': { headers: html, body: 'x' }, '/moved': moved });
    await server.setFault(fault, '/page');
    return inWeb({ port: server.port }, (from) => failure(url, from)).finally(() => server.stop());
  }
  const moved = { status: 302, headers: { location: '/page' } };
  const none = { dnsMs: null, connectMs: null, tlsMs: null, firstByteMs: null };
  const some = expect.any(Number);

  test('a name that does not exist is 404 and says that it is down', async () => {
    const { status, code, members } = await inWeb({ port: 1 }, (from) => failure('https://gone.example/', from));
    expect([status, code]).toEqual([404, 'host_not_found']);
    const reason = 'the host gone.example does not exist';
    const timings = { ...none, dnsMs: some };
    expect(members).toMatchObject({ up: false, reason, phase: 'dns', failedUrl: 'https://gone.example/', timings });
  });

  test.each<[string, Resolve, string]>([
    [
      'cannot resolve',
      () => Promise.reject(new ExchangeFailed('connecting', 'no resolver', undefined, { mayBeOurs: true })),
      'no resolver',
    ],
    ['waits for to the end', () => new Promise(() => {}), 'timed out'],
  ])(
    'a name that the machine %s may be up: the answer does not say that it is down',
    async (_what, resolve, reason) => {
      const asked = { port: 1, resolve, timeoutMs: 300 };
      const { status, charged, members } = await inWeb(asked, (from) => failure('https://any.example/', from));
      expect([status, charged]).toEqual([502, false]);
      expect(members).toMatchObject({ up: null, reason, phase: 'dns' });
    },
  );

  test('a port that refuses fails while connecting', async () => {
    const { status, members } = await faulty('refused');
    expect([status, members.up, members.phase]).toEqual([502, false, 'connect']);
    expect(members.reason).toBe('the connection was refused');
    expect(members).toMatchObject({ tls: null, timings: { ...none, dnsMs: some, connectMs: some, totalMs: some } });
  });

  test('a server that says nothing fails after the request, at the deadline', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const asked = Promise.withResolvers<void>();
    const silent = () => {
      asked.resolve();
      return new Promise<never>(() => {});
    };
    const server = await startReplay({ '/page': silent });
    const timeoutMs = 2000;
    const failing = inWeb({ port: server.port, timeoutMs }, (from) => failure('http://good.example/page', from));
    await asked.promise;
    vi.advanceTimersByTime(timeoutMs);
    const { members } = await failing.finally(() => server.stop());
    expect([members.phase, members.reason]).toEqual(['request', 'timed out']);
    expect(members).toMatchObject({ timings: { connectMs: some, tlsMs: null, firstByteMs: some } });
  });

  test('a failure behind a redirect names the redirect and the URL that failed', async () => {
    const { members } = await faulty('reset', 'http://good.example/moved');
    expect(members).toMatchObject({
      url: 'http://good.example/moved',
      failedUrl: 'http://good.example/page',
      phase: 'request',
      redirects: [{ url: 'http://good.example/moved', status: 302, latencyMs: some }],
    });
  });

  test('redirects without an end fail at no step', async () => {
    const { members } = await faulty('redirect-loop');
    expect([members.phase, members.reason]).toEqual(['redirects', 'it redirects more than 5 times']);
    expect(members.redirects).toHaveLength(6);
  });

  test('a server that speaks no TLS fails in the handshake, without a certificate', async () => {
    const server = await startReplay();
    const { members } = await inWeb({ port: server.port }, (from) => failure('https://good.example/', from));
    await server.stop();
    expect(members).toMatchObject({ phase: 'tls', tls: null, certificateError: null });
    expect(members.reason).toMatch(/^its TLS handshake failed \(/);
  });

  test.each([
    ['expired', 'expired', 'CERT_HAS_EXPIRED', 1580515200],
    ['signed by nobody that we know', true, 'UNABLE_TO_VERIFY_LEAF_SIGNATURE', 4948803968],
  ] as const)(
    'a certificate that is %s is shown, and nothing is asked over its connection',
    async (_what, tls, fault, validTo) => {
      const server = await startReplay({ '*': { body: '{}' } }, { tls });
      const ca = EXPIRED;
      const { port } = server;
      const { status, members } = await inWeb({ port, ca }, (from) => failure('https://good.example/', from));
      const { received } = server;
      await server.stop();
      expect([status, received]).toEqual([502, []]);
      expect(members).toMatchObject({
        up: false,
        phase: 'tls',
        certificateError: fault,
        reason: `its TLS certificate is not valid (${fault})`,
        tls: { subject: 'good.example', issuer: 'percall tests', validTo },
        timings: { firstByteMs: null },
      });
      const { expiresInDays } = members.tls as { expiresInDays: number };
      expect(expiresInDays < 0).toBe(fault === 'CERT_HAS_EXPIRED');
    },
  );
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

  test.each(['/unseen', '/unseen.txt'])('never sells a text that nobody can see: %s', async (path) => {
    const failed = { status: 502, message: 'good.example: its page has no text' };
    await expect(extract(`https://good.example${path}`)).rejects.toMatchObject(failed);
  });

  test('reads a page for longer than it may be fetched, because that is no fault of its host', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
    const server = await startReplay({ '/page': { headers: html, body: '<title>A page</title><p>Short.</p>' } });
    const timeoutMs = 2000;
    const testHosts = new Map([['good.example', { address: '127.0.0.1', port: server.port }]]);
    const dial = { resolve: async () => [], testHosts };
    // It waits from a later moment than the time-out of the visit, so that one is over.
    const slow = {
      ...pages,
      read: async (...page: Parameters<PageReader['read']>) => {
        vi.advanceTimersByTime(timeoutMs);
        return pages.read(...page);
      },
    };
    const from = createWeb({ ...common, dial, timeoutMs, pages: slow });
    const url = 'http://good.example/page';
    await expect(
      webExtract.run({ url }, { web: from } as never, signal).finally(() => server.stop()),
    ).resolves.toMatchObject({ title: 'A page' });
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
