import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { type EmbeddedNetwork, startEmbeddedNetwork } from '../../../dev/network.ts';
import { priceOf } from '../../support/prices.ts';
import { type Service, startService } from '../../support/service/service.ts';
import { fixture, packagesEnvironment } from '../../support/upstream/packages.ts';
import { type Replay, startReplay } from '../../support/upstream/replay.ts';
import { buyOnce } from '../../support/usdc/buyer.ts';

// The three routes as a buyer sees them: the mounted service, paid on the embedded network, over replaying upstreams.

let network: EmbeddedNetwork;
let upstream: Replay;
let service: Service;
beforeAll(async () => {
  upstream = await startReplay({
    'GET /@example%2fmodern': { body: fixture('npm/modern.json') },
    'GET /downloads/point/last-week/@example/modern': { body: fixture('npm/downloads-modern.json') },
    'GET /pypi/flask-thing/json': { body: fixture('pypi/flask-thing.json') },
    'GET /@example%2fmodern/latest': { body: '{"name":"@example/modern","version":"2.1.0"}' },
    'GET /@example%2fmodern/2.0.0': { body: '{"name":"@example/modern","version":"2.0.0"}' },
    'POST /v1/query': ({ body }) => {
      const asked = JSON.parse(body);
      if (asked.package.name === 'absent') return { body: '{}' };
      return { body: fixture(asked.page_token === 'second' ? 'osv/page-2.json' : 'osv/page-1.json') };
    },
  });
  // The service loads it with the first request to npm, whose time-out includes that.
  await import('npm-registry-fetch');
  network = await startEmbeddedNetwork();
  service = await startService(network, { env: packagesEnvironment(upstream.url) });
});
afterAll(async () => {
  await service?.stop();
  await network?.stop();
  await upstream?.stop();
});
beforeEach(() => upstream.setFault(null));

const buy = (path: string) => buyOnce(network, service.origin, path);

const MOST_PURCHASES = 20;

/** Buys an answer with these members. Buys again where a source was late: then nothing was charged, or the answer says which member is missing. */
async function buyWhole(path: string, members: readonly string[]): ReturnType<typeof buy> {
  for (let purchases = 1; ; purchases++) {
    const bought = await buy(path);
    const missing: { field: string }[] = bought.body.missing ?? [];
    const isLate = bought.body.charged === false || missing.some(({ field }) => members.includes(field));
    if (!isLate || purchases === MOST_PURCHASES) return bought;
  }
}

describe('a call that is answered', () => {
  test.each([
    ['/v1/paid/packages/npm?name=@example/modern', { version: '2.1.0', weeklyDownloads: 1234567 }],
    ['/v1/paid/packages/npm?name=%40example%2Fmodern', { version: '2.1.0' }],
    ['/v1/paid/packages/pypi?name=Flask.Thing', { version: '2.0.1', licence: 'MIT OR Apache-2.0' }],
    ['/v1/paid/packages/vulns?name=@example/modern', { count: 2, version: null }],
    ['/v1/paid/packages/vulns?name=@example/modern&version=2.0.0', { count: 2, version: '2.0.0' }],
  ])('%s costs its price in the catalogue', async (path, expected) => {
    const { answer, body, paid, transfers } = await buyWhole(path, Object.keys(expected));
    expect([answer.status, paid, transfers]).toEqual([200, priceOf(path).units, 1]);
    expect(body).toMatchObject({ ...expected, source: { retrievedAt: expect.any(Number) } });
  });
});

describe('a call that fails', () => {
  test.each([
    ['/v1/paid/packages/npm?name=absent', 404],
    ['/v1/paid/packages/pypi?name=absent', 404],
    ['/v1/paid/packages/vulns?name=absent', 404],
    ['/v1/paid/packages/vulns?name=absent&version=1.0.0&ecosystem=PyPI', 404],
    ['/v1/paid/packages/vulns?name=@example/modern&version=2.0.99', 404],
    ['/v1/paid/packages/npm?name=a%20b', 400],
    ['/v1/paid/packages/npm?name=express&version=1.0.0', 400],
    ['/v1/paid/packages/vulns?name=lodash&version=%5E4', 400],
    ['/v1/paid/packages/vulns?name=lodash&ecosystem=deb', 400],
  ])('%s gets %d and is never charged', async (path, status) => {
    const { answer, body, paid, transfers } = await buy(path);
    expect([answer.status, paid, transfers]).toEqual([status, 0n, 0]);
    expect(body).toMatchObject({ status, charged: false });
  });

  test.each([
    ['npm?name=other', 'npm'],
    ['pypi?name=other', 'pypi'],
    ['vulns?name=other', 'registry: npm: answered HTTP 500; deps.dev: answered HTTP 500'],
  ])('%s gets 502 while its source is down, names the source, and is never charged', async (query, name) => {
    await upstream.setFault('500');
    const { answer, body, paid, transfers } = await buy(`/v1/paid/packages/${query}`);
    expect([answer.status, paid, transfers]).toEqual([502, 0n, 0]);
    expect(body).toMatchObject({ code: 'upstream_failed', charged: false, detail: expect.stringContaining(name) });
  });
});
