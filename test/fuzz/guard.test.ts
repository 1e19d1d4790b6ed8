import { createServer, type Server } from 'node:http';
import { type AddressInfo, createServer as createTcpServer } from 'node:net';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import type { DialOptions } from '../../src/upstream/guard/dial.ts';
import { visit } from '../../src/upstream/guard/follow.ts';
import { createResolve, type Resolve } from '../../src/upstream/guard/guard.ts';
import { type NameServer, startNameServer } from '../support/upstream/name-server.ts';
import { ADDRESSES, CLOSED_NAMES, GOOD, REFUSED_FORMS } from './guard-vectors.ts';

const signal = new AbortController().signal;

/** Counts connections to the closed address, before any byte of HTTP. */
let connections = 0;
const countingServer = createTcpServer((socket) => {
  connections += 1;
  socket.on('error', () => undefined);
  socket.end('HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ncontent-length: 6\r\n\r\nsecret');
});
let countingPort = 0;
let names: NameServer;
let pages: Server;
let pagesPort = 0;

beforeAll(async () => {
  await new Promise<void>((resolve) => countingServer.listen(0, '127.0.0.1', resolve));
  countingPort = (countingServer.address() as AddressInfo).port;
  names = await startNameServer((name, before) => zone(name, before));
  pages = createServer((request, response) => {
    const to = new URL(request.url ?? '/', 'http://page.example').searchParams.get('to');
    if (to === null) response.end('a page');
    // As UTF-8 bytes where a header allows them, else as the URL parser writes it.
    else response.writeHead(302, { location: /[\t\n]/.test(to) ? new URL(to).href : bytesOf(to) }).end();
  });
  await new Promise<void>((resolve) => pages.listen(0, '127.0.0.1', resolve));
  pagesPort = (pages.address() as AddressInfo).port;
});

afterAll(async () => {
  pages.close();
  countingServer.close();
  await names.stop();
});

// Hundreds of connections begin at once. None may end by its time-out, however long a busy machine takes for all of them.
beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] }));
afterEach(() => void vi.useRealTimers());

const bytesOf = (text: string) => Buffer.from(text, 'utf8').toString('latin1');

/** Names that resolve to closed ranges: `v-<index>` to one of the addresses, the others as their name says. */
function zone(name: string, before: number): readonly string[] {
  const [, index] = /^v-(\d+)\./.exec(name) ?? [];
  if (index !== undefined) return [ADDRESSES[Number(index)] ?? '127.0.0.1'];
  if (name.startsWith('mixed-last.')) return ['1.1.1.1', '127.0.0.1'];
  if (name.startsWith('mixed-first.')) return ['127.0.0.1', '1.1.1.1'];
  if (name.startsWith('mixed-family.')) return ['1.1.1.1', '::1'];
  // The rebinding server: public at the first lookup, loopback afterwards.
  if (name.startsWith('rebind.')) return before === 0 ? ['1.1.1.1'] : ['127.0.0.1'];
  if (name.startsWith('rebind-back.')) return before === 0 ? ['127.0.0.1'] : ['1.1.1.1'];
  return [];
}

/** The production guard, except that ports 80 and 443 of every permitted address lead to the counting server. */
const guarded = (extra: Partial<DialOptions> = {}): DialOptions => ({
  resolve: createResolve([names.address]),
  portFor: () => countingPort,
  ...extra,
});

async function attempt(url: string, options: DialOptions): Promise<string> {
  const limitHost = () => undefined;
  try {
    const landing = await visit(new URL(url), { ...options, userAgent: 'test', limitHost }, signal);
    const body = await landing.read(1000);
    await landing.close();
    return body.toString();
  } catch (error) {
    return (error as { code?: string }).code ?? String(error);
  }
}

const vectors = [
  ...REFUSED_FORMS,
  ...CLOSED_NAMES.map((name) => `http://${name}/`),
  ...ADDRESSES.flatMap((address) => {
    const host = address.includes(':') ? `[${address}]` : address;
    return [`http://${host}/`, `https://${host}/`];
  }),
];
const byName = [
  ...ADDRESSES.map((_, index) => `http://v-${index}.attacker.example/`),
  ...['mixed-last', 'mixed-first', 'mixed-family', 'rebind-back'].map((name) => `http://${name}.attacker.example/`),
];

describe('the counting server', () => {
  test('receives the requests when there is no guard', async () => {
    connections = 0;
    const testHosts = new Map([['open.example', { address: '127.0.0.1', port: countingPort }]]);
    expect(await attempt('http://open.example/', guarded({ testHosts }))).toBe('secret');
    expect(connections).toBe(1);
  });
});

describe('the guard', () => {
  test(`refuses ${vectors.length} URLs by their form, and no packet leaves`, async () => {
    connections = 0;
    const outcomes = await Promise.all(vectors.map(async (url) => [url, await attempt(url, guarded())]));
    expect(outcomes.filter(([, outcome]) => outcome !== 'url_not_public')).toEqual([]);
    expect(connections).toBe(0);
    expect(vectors.length + byName.length).toBeGreaterThanOrEqual(250);
    expect(new Set([...vectors, ...byName]).size).toBe(vectors.length + byName.length);
  });

  test(`refuses ${byName.length} names by their addresses, and no packet leaves`, async () => {
    connections = 0;
    const asked = names.asked.length;
    const outcomes = await Promise.all(byName.map(async (url) => [url, await attempt(url, guarded())]));
    expect(outcomes.filter(([, outcome]) => outcome !== 'url_not_public')).toEqual([]);
    expect(connections).toBe(0);
    // The guard judged the DNS answers, not the names.
    expect(names.asked.length - asked).toBe(byName.length * 2);
  });

  test('connects to the address that it looked up, so a name that changes to loopback is refused', async () => {
    connections = 0;
    const looked: string[][] = [];
    const inner = createResolve([names.address]);
    const resolve: Resolve = async (host, within) => {
      const found = await inner(host, within);
      looked.push(found);
      AbortSignal.timeout(300).onabort = () => soon.abort();
      return found;
    };
    const soon = new AbortController();
    const limitHost = () => undefined;
    const first = visit(
      new URL('http://rebind.attacker.example/'),
      { resolve, portFor: () => countingPort, userAgent: 'test', limitHost },
      soon.signal,
    );
    // The test's own guard or the network stops the connection outside loopback. The test checks only where it went.
    await expect(first).rejects.toThrow();
    expect(looked).toEqual([['1.1.1.1']]);
    expect(await attempt('http://rebind.attacker.example/', guarded())).toBe('url_not_public');
    expect(connections).toBe(0);
  });

  test('refuses redirects to all of them, at the first redirect and at the last', async () => {
    connections = 0;
    const testHosts = new Map([['page.example', { address: '127.0.0.1', port: pagesPort }]]);
    const to = (url: string) => `http://page.example/?to=${encodeURIComponent(url)}`;
    // `http:127.0.0.1` is a path on a page that came over http. The name that changes to loopback has changed by now.
    const elsewhere = (url: string) => new URL(url, 'http://page.example/').hostname !== 'page.example';
    const targets = [...vectors, ...byName.filter((url) => !url.includes('rebind-back'))].filter(elsewhere);
    expect(targets.length).toBeGreaterThan(400);
    const chained = targets.filter((_, index) => index % 5 === 0).map((url) => to(to(to(url))));
    const outcomes = await Promise.all(
      [...targets.map(to), ...chained].map(async (url) => [url, await attempt(url, guarded({ testHosts }))]),
    );
    expect(outcomes.filter(([, outcome]) => outcome !== 'url_not_public')).toEqual([]);
    expect(connections).toBe(0);
  });

  test(`lets ${GOOD.length} good URLs through to a page`, async () => {
    const hosts = GOOD.map((url) => new URL(url).hostname.replace(/\.$/, ''));
    const testHosts = new Map(hosts.map((host) => [host, { address: '127.0.0.1', port: pagesPort }]));
    const outcomes = await Promise.all(GOOD.map(async (url) => [url, await attempt(url, guarded({ testHosts }))]));
    expect(outcomes.filter(([, outcome]) => outcome !== 'a page')).toEqual([]);
    expect(GOOD.length).toBeGreaterThanOrEqual(40);
  });
});
