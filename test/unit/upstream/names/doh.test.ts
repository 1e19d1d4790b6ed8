import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { UpstreamFailed } from '../../../../src/errors.ts';
import { dnsAnswers, json, type NamesWorld, NOW, startNames } from '../../../support/upstream/names.ts';

let world: NamesWorld;
beforeEach(async () => {
  world = await startNames();
});
afterEach(() => world.stop());

const NAME = 'www.example.com';
const A = { type: 'A', data: '192.0.2.1' } as const;
const cloudflare = (...args: Parameters<typeof dnsAnswers>) => world.answers.set('/cloudflare', dnsAnswers(...args));
const google = (...args: Parameters<typeof dnsAnswers>) => world.answers.set('/google', dnsAnswers(...args));
const lookup = (...types: ('A' | 'AAAA' | 'CNAME' | 'MX' | 'NS')[]) => world.sources.dns.lookup(NAME, types);

test('each type is asked once, and every type has its list', async () => {
  cloudflare([A, { type: 'MX', data: '10 mx.example.com.', ttl: 60 }]);
  expect(await lookup('A', 'AAAA', 'MX')).toEqual({
    status: 'NOERROR',
    exists: true,
    validated: true,
    records: {
      A: [{ address: '192.0.2.1', ttl: 300 }],
      AAAA: [],
      MX: [{ preference: 10, exchange: 'mx.example.com', ttl: 60 }],
    },
    aliases: [],
    resolver: { name: 'Cloudflare 1.1.1.1', url: world.urls.dns },
    retrievedAtMs: NOW,
  });
  expect(world.requests.sort()).toEqual(['A', 'AAAA', 'MX'].map((type) => `/cloudflare?name=${NAME}&type=${type}`));
  expect(world.headers.every(({ accept }) => accept === 'application/dns-json')).toBe(true);
  expect(world.headers[0]?.['user-agent']).toContain('percall');
});

describe('the second resolver', () => {
  test.each([
    ['is down', () => world.answers.delete('/cloudflare')],
    ['fails for one type', () => world.answers.set('/cloudflare', (url) => answerUnless(url, 'AAAA'))],
    ['refuses', () => cloudflare([], { Status: 5 })],
    ['is cut short', () => cloudflare([A], { TC: true })],
    ['answers another question', () => cloudflare([A], { Question: [{ name: 'example.org', type: 1 }] })],
    ['sends a record that cannot be read', () => cloudflare([{ type: 'A', data: 'somewhere' }])],
    ['has no AD flag', () => cloudflare([A], { AD: undefined })],
  ])('answers everything when the first one %s', async (_what, breakFirst) => {
    google([{ type: 'A', data: '192.0.2.2' }]);
    breakFirst();
    const answer = await lookup('A', 'AAAA');
    expect(answer.resolver).toEqual({ name: 'Google Public DNS', url: world.urls.dnsFallback });
    expect(answer.records).toEqual({ A: [{ address: '192.0.2.2', ttl: 300 }], AAAA: [] });
  });

  test('is not asked when the first one answers', async () => {
    cloudflare([A]);
    await lookup('A');
    expect(world.requests.some((path) => path.startsWith('/google'))).toBe(false);
  });

  test('failing too, both are named', async () => {
    const failure = await lookup('A').catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(UpstreamFailed);
    expect(String(failure)).toMatch(/DNS over HTTPS: Cloudflare 1.1.1.1: .*; Google Public DNS: /);
  });

  test('is not asked when the caller has gone', async () => {
    const gone = new AbortController();
    gone.abort(new Error('gone'));
    await expect(world.sources.dns.lookup(NAME, ['A'], gone.signal)).rejects.toThrow('gone');
    expect(world.requests).toEqual([]);
  });
});

const answerUnless = (url: URL, type: string) =>
  url.searchParams.get('type') === type ? json({}, 'application/json', 500) : dnsAnswers([A])(url);

describe('absence', () => {
  test('NXDOMAIN is an answer', async () => {
    cloudflare([], { Status: 3, AD: false });
    expect(await lookup('A', 'MX')).toMatchObject({
      status: 'NXDOMAIN',
      exists: false,
      validated: false,
      records: { A: [], MX: [] },
    });
  });

  test('absence can be proved', async () => {
    cloudflare([], { Status: 3, AD: true });
    expect(await lookup('A')).toMatchObject({ exists: false, validated: true });
  });

  test('no record of a type is not absence of the name', async () => {
    cloudflare([]);
    expect(await lookup('A')).toMatchObject({ status: 'NOERROR', exists: true, records: { A: [] } });
  });

  test('an alias whose end is missing exists itself', async () => {
    cloudflare([{ type: 'CNAME', data: 'gone.example.net.' }], { Status: 3 });
    expect(await lookup('A')).toMatchObject({
      status: 'NXDOMAIN',
      exists: true,
      aliases: [{ name: NAME, target: 'gone.example.net', ttl: 300 }],
    });
  });
});

describe('aliases', () => {
  test('the chain in order; of CNAME only the name’s own is a record', async () => {
    cloudflare([
      { type: 'CNAME', data: 'b.example.net.', name: 'A.example.org.' },
      { type: 'CNAME', data: 'a.example.org.' },
      { type: 'A', data: '192.0.2.7', name: 'b.example.net' },
    ]);
    expect(await lookup('A', 'CNAME')).toMatchObject({
      aliases: [
        { name: NAME, target: 'a.example.org' },
        { name: 'a.example.org', target: 'b.example.net' },
      ],
      records: { A: [{ address: '192.0.2.7' }], CNAME: [{ target: 'a.example.org', ttl: 300 }] },
    });
  });

  test('a loop ends', async () => {
    cloudflare([
      { type: 'CNAME', data: 'a.example.org.' },
      { type: 'CNAME', data: `${NAME}.`, name: 'a.example.org' },
    ]);
    expect((await lookup('A')).aliases).toHaveLength(2);
  });
});

describe('DNSSEC', () => {
  test('one answer that was not validated spoils the flag', async () => {
    world.answers.set('/cloudflare', (url) => dnsAnswers([A], { AD: url.searchParams.get('type') === 'A' })(url));
    expect((await lookup('A')).validated).toBe(true);
    expect((await lookup('A', 'MX')).validated).toBe(false);
  });

  const BOGUS = { status: 'SERVFAIL', exists: null, validated: false, records: { A: [] } };

  test.each([
    ['in words', { Comment: ['EDE(9): DNSKEY Missing'] }],
    ['in one word', { Comment: 'EDE(7): Signature Expired' }],
    ['as objects', { extended_dns_errors: [{ info_code: 6, extra_text: '' }] }],
  ])('a bogus zone is an answer, the reason given %s', async (_how, fields) => {
    cloudflare([], { Status: 2, AD: false, ...fields });
    expect(await lookup('A')).toMatchObject(BOGUS);
    expect(world.requests).toHaveLength(1);
  });

  test('without a reason, it is bogus when it answers unchecked', async () => {
    world.answers.set('/cloudflare', (url) =>
      url.searchParams.get('cd') === '1' ? dnsAnswers([A])(url) : dnsAnswers([], { Status: 2, AD: false })(url),
    );
    expect(await lookup('A')).toMatchObject(BOGUS);
    expect(world.requests).toHaveLength(2);
  });

  test.each([
    ['that has another reason', { Comment: ['EDE(22): No Reachable Authority'] }],
    ['that lasts unchecked', {}],
  ])('a server failure %s is a failure', async (_what, fields) => {
    cloudflare([], { Status: 2, AD: false, ...fields });
    await expect(lookup('A')).rejects.toBeInstanceOf(UpstreamFailed);
  });
});
