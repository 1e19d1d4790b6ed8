import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { z } from 'zod';
import {
  createUpstreams,
  publishSources,
  type UpstreamOptions,
  type Upstreams,
} from '../../../../src/upstream/client/client.ts';
import { ownPort } from '../../../support/service/own-port.ts';
import { type Replay, startReplay } from '../../../support/upstream/replay.ts';

const shape = z.object({ answer: z.int() });
const body = '{"answer":42}';
const OPTIONS = { name: 'up', timeoutMs: 10_000, maxBytes: 64 * 1024, concurrency: 4, retries: 0 } as const;

let now = 1_000_000;
const clock = { nowMs: () => now, sleep: async () => undefined };
let replay: Replay;
let upstreams: Upstreams;

beforeEach(async () => {
  replay = await startReplay({ '/a': { body } }, { port: await ownPort() });
  upstreams = createUpstreams({ clock, userAgent: 'percall/test (+https://contact.example)' });
});
afterEach(async () => {
  await upstreams.close();
  await replay.stop();
});

const open = (options: Partial<UpstreamOptions> = {}) => upstreams.open({ ...OPTIONS, ...options });
const a = () => ({ url: `${replay.url}/a` });
const failure = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no failure',
    (error: { status?: number; message: string }) => `${error.status} ${error.message}`,
  );

describe('an upstream', () => {
  test('gives parsed JSON with the time of reading, and says who asks', async () => {
    expect(await open().jsonDated(a(), shape)).toEqual({
      data: { answer: 42 },
      retrievedAtMs: now,
      url: `${replay.url}/a`,
    });
    expect(replay.received[0]?.headers).toMatchObject({
      'user-agent': 'percall/test (+https://contact.example)',
      accept: 'application/json',
      'accept-encoding': 'gzip, deflate, br, zstd',
    });
  });

  test('is up in the metrics while its newest answer was good, and missing before the first', async () => {
    const registry = new Registry();
    publishSources(registry, upstreams);
    const up = open();
    open({ name: 'never asked' });
    const values = async () => (await registry.getSingleMetric('source_up')?.get())?.values;
    expect(await values()).toEqual([]);
    await up.fetch(a());
    expect(await values()).toEqual([{ labels: { source: 'up' }, value: 1 }]);
    now += 1;
    replay.answers['/a'] = { status: 503 };
    await up.fetch(a());
    expect(await values()).toEqual([{ labels: { source: 'up' }, value: 0 }]);
    now += 1;
    replay.answers['/a'] = { body };
    await up.fetch(a());
    expect(await values()).toEqual([{ labels: { source: 'up' }, value: 1 }]);
  });

  test('sends a body, headers and another accept as they were given', async () => {
    const request = {
      ...a(),
      method: 'POST',
      body: '{"q":1}',
      headers: { 'x-a': 'b' },
      accept: 'application/x',
    } as const;
    await open().fetch(request);
    expect(replay.received[0]).toMatchObject({
      method: 'POST',
      body: '{"q":1}',
      headers: { 'x-a': 'b', accept: 'application/x' },
    });
  });

  test('takes JSON by any of its types, and null for 404 alone', async () => {
    for (const type of [
      'application/rdap+json',
      'application/dns-json',
      'text/plain; charset=utf-8',
      'application/octet-stream',
    ]) {
      replay.answers['/a'] = { body, headers: { 'content-type': type } };
      expect(await open().json(a(), shape)).toEqual({ answer: 42 });
    }
    expect(await open().json({ url: `${replay.url}/gone` }, shape)).toBeNull();
    replay.answers['/a'] = { status: 410, body };
    expect(await failure(open().json(a(), shape))).toBe('502 up: answered HTTP 410');
  });

  test('follows redirects within its origin, and others only where the guard allows it', async () => {
    replay.answers['/b'] = { status: 308, headers: { location: '/a' } };
    expect((await open().fetch({ url: `${replay.url}/b` })).url).toBe(`${replay.url}/a`);
    const other = await startReplay({ '/a': { body } });
    replay.answers['/b'] = { status: 302, headers: { location: `${other.url}/a` } };
    expect(await failure(open().fetch({ url: `${replay.url}/b` }))).toBe('502 up: redirects to where we do not follow');
    expect(other.received).toEqual([]);
    await other.stop();
  });

  test('sends no credentials to another origin', async () => {
    const other = await startReplay({ '/a': { body } });
    const dial = {
      resolve: async () => [],
      testHosts: new Map([['good.example', { address: '127.0.0.1', port: other.port }]]),
    };
    const led = createUpstreams({ clock, userAgent: 'x', dial });
    replay.answers['/b'] = { status: 302, headers: { location: 'http://good.example/a' } };
    const secrets = { authorization: 'Bearer secret', cookie: 'a=b', 'grpc-metadata-macaroon': '0201' };
    const headers = { ...secrets, accept: 'text/plain' };
    const got = await led.open(OPTIONS).fetch({ url: `${replay.url}/b`, headers });
    expect(got.url).toBe('http://good.example/a');
    expect(other.received[0]?.headers).toMatchObject({ accept: 'text/plain', 'user-agent': 'x' });
    for (const name of Object.keys(secrets)) expect(other.received[0]?.headers).not.toHaveProperty(name);
    await led.close();
    await other.stop();
  });

  test("ends with the caller's own reason when the caller leaves", async () => {
    await replay.setFault('time-out');
    const control = new AbortController();
    const asked = open().fetch({ ...a(), signal: control.signal });
    control.abort(new Error('gone'));
    await expect(asked).rejects.toThrow('gone');
  });

  test('takes a shorter time-out and a smaller cap from the request, never larger ones', async () => {
    await replay.setFault('time-out');
    // The longer time-out is longer than this test may take.
    const longer = { timeoutMs: 600_000 };
    expect(await failure(open(longer).fetch({ ...a(), timeoutMs: 100 }))).toBe('502 up: timed out');
    expect(await failure(open({ timeoutMs: 150 }).fetch({ ...a(), ...longer }))).toBe('502 up: timed out');
    await replay.setFault(null);
    expect(await failure(open().fetch({ ...a(), maxBytes: 5 }))).toMatch(/larger than/);
    expect(await failure(open({ maxBytes: 5 }).fetch({ ...a(), maxBytes: 500 }))).toMatch(/larger than/);
  });
});

describe('a retry', () => {
  test('is made once when the connection was lost before a status, on GET and HEAD', async () => {
    const up = open({ retries: 1 });
    await replay.setFault('reset');
    expect(await failure(up.fetch(a()))).toBe('502 up: the connection was lost');
    expect(replay.received).toHaveLength(2);
    await failure(up.fetch({ ...a(), method: 'HEAD' }));
    expect(replay.received).toHaveLength(4);
  });

  test.each([
    ['a POST', { method: 'POST', body: 'x' } as const, 'reset'],
    ['a status, whatever it is', {}, '500'],
    ['a body that breaks off', {}, 'encoding-lie'],
  ] as const)('is never made after %s', async (_what, request, fault) => {
    await replay.setFault(fault);
    await failure(open({ retries: 1 }).fetch({ ...a(), ...request }));
    expect(replay.received).toHaveLength(1);
  });

  test('recovers from one lost connection', async () => {
    let lost = 0;
    const server = createServer((_, response) => {
      lost += 1;
      if (lost === 1) response.socket?.destroy();
      else response.end(body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    expect((await open({ retries: 1 }).fetch({ url })).status).toBe(200);
    expect(await failure(open({ retries: 0 }).fetch({ url }))).toBe('no failure');
    server.close();
  });
});

describe('callers', () => {
  test('with the same request at the same time share it, and an abort of one does not affect the others', async () => {
    const up = open();
    const asked = Promise.withResolvers<void>();
    const held = Promise.withResolvers<void>();
    replay.answers['/a'] = async () => {
      asked.resolve();
      await held.promise;
      return { body };
    };
    const control = new AbortController();
    const leaving = up.fetch({ ...a(), signal: control.signal });
    const staying = [up.json(a(), shape), up.json(a(), shape)];
    await asked.promise;
    control.abort(new Error('gone'));
    await expect(leaving).rejects.toThrow('gone');
    held.resolve();
    expect(await Promise.all(staying)).toEqual([{ answer: 42 }, { answer: 42 }]);
    expect(replay.received).toHaveLength(1);
  });

  test('that POST share nothing, unless a cache declares POSTs as reads', async () => {
    const request = { ...a(), method: 'POST', body: 'x' } as const;
    const plain = open();
    await Promise.all([plain.fetch(request), plain.fetch(request)]);
    expect(replay.received).toHaveLength(2);
    const kept = open({ cache: { ttlMs: 1000, staleIfErrorMs: 0, maxEntries: 10 } });
    await Promise.all([kept.fetch(request), kept.fetch(request), kept.fetch({ ...request, body: 'y' })]);
    expect(replay.received).toHaveLength(4);
  });

  test('above the number a minute of its host get 429, while kept answers go on', async () => {
    const up = open({ perMinute: 2, cache: { ttlMs: 1000, staleIfErrorMs: 0, maxEntries: 10 } });
    const ask = (path: string) => failure(up.fetch({ url: `${replay.url}/${path}` }));
    expect(await Promise.all([ask('a'), ask('b')])).toEqual(['no failure', 'no failure']);
    expect(await ask('c')).toBe('429 This service sends one host at most 2 requests a minute.');
    expect(await ask('a')).toBe('no failure');
    expect(replay.received.map(({ url }) => url)).toEqual(['/a', '/b']);
    now += 60_000;
    expect(await ask('c')).toBe('no failure');
  });

  test('above the concurrency wait, and above the queue get 503', async () => {
    const up = open({ concurrency: 1 });
    let running = 0;
    let most = 0;
    replay.answers['*'] = async () => {
      running += 1;
      most = Math.max(most, running);
      await delay(20);
      running -= 1;
      return { body };
    };
    const asked = Array.from({ length: 20 }, (_, n) => failure(up.fetch({ url: `${replay.url}/${n}` })));
    const outcomes = await Promise.all(asked);
    expect(most).toBe(1);
    expect(outcomes.filter((outcome) => outcome === 'no failure')).toHaveLength(17);
    expect(outcomes.filter((outcome) => outcome.startsWith('503 up: too many calls'))).toHaveLength(3);
  });
});

describe('the cache', () => {
  const cache = { ttlMs: 1000, staleIfErrorMs: 5000, maxEntries: 2 };

  test('returns an answer again for its time, 404 included, with the time of reading', async () => {
    const up = open({ cache });
    const readAt = now;
    await up.json(a(), shape);
    await up.json({ url: `${replay.url}/gone` }, shape);
    now += 999;
    expect((await up.fetch(a())).retrievedAtMs).toBe(readAt);
    expect(await up.json({ url: `${replay.url}/gone` }, shape)).toBeNull();
    expect(replay.received).toHaveLength(2);
    now += 1;
    expect((await up.fetch(a())).retrievedAtMs).toBe(now);
    expect(replay.received).toHaveLength(3);
  });

  test.each(['refused', '500', '429', 'time-out', 'encoding-lie'] as const)(
    'replaces an upstream that fails (%s), for its time and no longer',
    async (fault) => {
      const up = open({ cache, ...(fault === 'time-out' && { timeoutMs: 1000 }) });
      // A pause of the machine may be longer than the shorter time-out.
      await expect.poll(async () => (await up.fetch(a())).status).toBe(200);
      await replay.setFault(fault);
      now += 5999;
      expect(await up.json(a(), shape)).toEqual({ answer: 42 });
      now += 1;
      expect(await failure(up.json(a(), shape))).toMatch(/^502 up: /);
    },
  );

  test('caches no failure and drops the oldest answer', async () => {
    const up = open({ cache });
    replay.answers['/a'] = { status: 500, body };
    await up.fetch(a());
    replay.answers['/a'] = { body };
    expect((await up.fetch(a())).status).toBe(200);
    for (const path of ['b', 'c']) await up.fetch({ url: `${replay.url}/${path}` });
    const before = replay.received.length;
    await up.fetch({ url: `${replay.url}/c` });
    expect(replay.received).toHaveLength(before);
    await up.fetch(a());
    expect(replay.received).toHaveLength(before + 1);
  });
});

describe('the breaker', () => {
  test('stops asking an upstream after ten consecutive failures, and tries one call after five seconds', async () => {
    const up = open();
    await replay.setFault('500');
    for (let call = 0; call < 10; call++) await up.fetch({ url: `${replay.url}/${call}` });
    expect(await failure(up.fetch(a()))).toBe('502 up: has failed too often and is left alone for now');
    expect(replay.received).toHaveLength(10);
    now += 5000;
    await replay.setFault(null);
    const [first, second] = await Promise.all([
      failure(up.fetch(a())),
      failure(up.fetch({ url: `${replay.url}/other` })),
    ]);
    expect([first, second]).toEqual(['no failure', '502 up: has failed too often and is left alone for now']);
    expect(await failure(up.fetch(a()))).toBe('no failure');
  });

  test('honours Retry-After, and only for the origin that sent it', async () => {
    const up = open();
    replay.answers['/a'] = { status: 429, headers: { 'retry-after': '3' } };
    await up.fetch(a());
    replay.answers['/a'] = { body };
    expect(await failure(up.fetch(a()))).toMatch(/left alone/);
    const other = await startReplay({ '/a': { body } });
    expect(await failure(up.fetch({ url: `${other.url}/a` }))).toBe('no failure');
    await other.stop();
    now += 3000;
    expect(await failure(up.fetch(a()))).toBe('no failure');
  });

  test('does not count error answers: a caller with bad requests must not cut off others', async () => {
    const up = open();
    for (let call = 0; call < 12; call++) await up.fetch({ url: `${replay.url}/gone-${call}` });
    expect(await failure(up.fetch(a()))).toBe('no failure');
  });
});
