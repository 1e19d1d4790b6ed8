import { afterEach, describe, expect, test } from 'vitest';
import {
  accept,
  acceptV1,
  base64,
  challenge,
  challengeV1,
  GATEWAY_EXTRA,
  HOUR_MS,
  NETWORK,
  type OpenMarket,
  ORIGIN,
  openMarket,
  PAY_TO,
} from '../support/market/market.ts';
import { countRunningTime } from '../support/running-time.ts';
import { PATIENT_MS } from '../support/upstream/patience.ts';
import type { Recorded } from '../support/upstream/replay.ts';

// The market against sellers on loopback, over TLS, with every fault that a third party's server can have.

const A = 'https://a.good.example';
const HTML = { headers: { 'content-type': 'text/html' }, body: '<html><h1>Pay <b>me</b></h1></html>' };
const PRIVATE = { status: 302, headers: { location: 'http://169.254.169.254/latest/meta-data/' } };

countRunningTime();

let open: OpenMarket;
const start = async (options: Parameters<typeof openMarket>[0]) => {
  open = await openMarket(options);
};
afterEach(() => open.close());

const one = () => open.market.all()[0];
const listed = () => one()?.listing.entry;

describe('a good seller', () => {
  test('of version 2 is listed with the contents of its 402 and its documents, and the requests carry no secret', async () => {
    const extensions = { bazaar: { info: { input: { type: 'http', method: 'GET', queryParams: { city: 'Oslo' } } } } };
    const resource = { url: `${A}/weather`, description: 'Weather now', serviceName: 'Skies', tags: ['weather'] };
    const openApi = { info: { title: 'Other' }, paths: { '/weather': { get: { summary: 'City weather' } } } };
    await start({
      answers: {
        '/weather': challenge([accept()], { resource, extensions }),
        '/openapi.json': { body: JSON.stringify(openApi) },
      },
    });
    const { isNew, listed } = await open.submit(`${A}/weather`);
    expect([isNew, listed.failures, listed.calls]).toEqual([true, 0, 1]);
    expect(listed.listing).toEqual({
      entry: {
        url: `${A}/weather`,
        method: 'GET',
        priceUsd: '0.002',
        name: 'City weather',
        label: 'Skies',
        description: 'Weather now',
        params: [{ name: 'city', in: 'query', type: 'string', description: '', required: false, example: 'Oslo' }],
        payTo: PAY_TO,
        host: 'a.good.example',
        network: NETWORK,
        rail: 'direct',
        direct: null,
        body: null,
        source: 'market',
        category: 'weather',
        site: A,
        networks: [NETWORK],
        plainNetworks: [NETWORK],
      },
      keywords: 'weather',
    });
    expect(open.sellers.received.map(({ method, url }) => `${method} ${url}`)).toEqual([
      'GET /weather',
      'GET /openapi.json',
    ]);
    for (const { headers } of open.sellers.received) {
      expect(Object.keys(headers).sort()).toEqual(['accept', 'accept-encoding', 'connection', 'host', 'user-agent']);
      expect(headers['user-agent']).toMatch(/^percall\//);
    }
    expect([open.market.isOnline(`${A}/weather`), open.market.version()]).toEqual([true, 1]);
  });

  test('of version 1 is listed from its body', async () => {
    const described = acceptV1({
      description: 'Old but good',
      outputSchema: { input: { type: 'http', method: 'GET' } },
    });
    await start({ answers: { '/v1': challengeV1([described]) } });
    await open.submit(`${A}/v1`);
    expect(listed()).toMatchObject({ priceUsd: '0.003', description: 'Old but good', name: 'v1', label: 'v1' });
  });

  test('that answers only POST is called with POST, hourly too', async () => {
    const input = { type: 'http', method: 'POST', bodyType: 'json', body: { text: 'hi' } };
    const answers = { 'POST /sum': challenge([accept()], { extensions: { bazaar: { info: { input } } } }) };
    await start({ answers });
    await open.submit(`${A}/sum`);
    expect(listed()).toMatchObject({ method: 'POST', body: { text: 'hi' }, params: [{ name: 'text', in: 'body' }] });
    open.sellers.received.length = 0;
    await open.hours(1);
    expect(open.sellers.received.map(({ method, url, body }) => [method, url, body])).toEqual([['POST', '/sum', '{}']]);
    expect(one()).toMatchObject({ failures: 0, calls: 2 });
  });

  test('through the gateway is listed as such, with its price without the gateway', async () => {
    const gateway = accept({ extra: GATEWAY_EXTRA, amount: '500' });
    await start({ answers: { '/g': challenge([gateway, accept()]) } });
    await open.submit(`${A}/g`);
    const direct = { url: `${A}/g`, priceUsd: '0.002' };
    expect(listed()).toMatchObject({ rail: 'gateway', priceUsd: '0.0005', direct, plainNetworks: [] });
  });

  test('behind a redirect is listed at the final URL, with readable placeholders', async () => {
    await start({ answers: { '/old': { status: 308, headers: { location: '/new?x=1' } }, '*': challenge() } });
    await open.submit(`${A}/old`);
    await open.submit(`${A}/items/{id}#top`);
    expect(
      open.market
        .all()
        .map(({ listing }) => listing.entry.url)
        .sort(),
    ).toEqual([`${A}/items/{id}`, `${A}/new?x=1`]);
    expect(open.market.all().find(({ place }) => place.endsWith('{}'))?.listing.entry.params).toMatchObject([
      { name: 'id', in: 'path' },
    ]);
  });

  test('is listed once: a second submission updates it, under the URL that it has', async () => {
    await start({ answers: { '/x': challenge() } });
    await open.submit(`${A}/x`);
    open.sellers.answers['/x'] = challenge([accept({ amount: '9000' })]);
    await open.clock.advance(60_000);
    const again = await open.submit(`${A}/X/?ref=somebody#else`);
    expect([again.isNew, again.listed.listing.entry.url, again.listed.listing.entry.priceUsd]).toEqual([
      false,
      `${A}/x`,
      '0.009',
    ]);
    expect(open.market.all()).toHaveLength(1);
    expect(one()!.pricedAt - one()!.listedAt).toBe(60_000);
  });
});

test('a listing keeps its URL while it is online, whatever URL of its place is submitted', async () => {
  await start({ answers: { '/x': challenge() } });
  await open.submit(`${A}/x?a=1`);
  Object.assign(open.sellers.answers, { '/x?a=1': { status: 500 }, '/x?a=2': challenge() });
  await expect(open.submit(`${A}/x?a=2`)).rejects.toMatchObject({ code: 'no_402' });
  expect(listed()?.url).toBe(`${A}/x?a=1`);
  await open.hours(3);
  expect((await open.submit(`${A}/x?a=2`)).isNew).toBe(false);
  expect([listed()?.url, one()?.failures, open.market.all().length]).toEqual([`${A}/x?a=2`, 0, 1]);
});

/** An object that cannot be made a text. */
const NO_TEXT = { toString: 1, valueOf: 1 };

describe('is refused, and nothing is listed', () => {
  const slow = async (): Promise<Recorded> => new Promise(() => {});
  const huge = {
    status: 402,
    headers: {},
    body: JSON.stringify({ x402Version: 1, accepts: [], pad: 'x'.repeat(200_000) }),
  };
  const base = challenge();
  test.each<[string, string, Recorded | (() => Promise<Recorded>), number, string]>([
    ['a seller on other chains', `${A}/x`, challenge([accept({ network: 'eip155:8453' })]), 400, 'not_payable_here'],
    [
      'one that wants another token',
      `${A}/x`,
      challenge([accept({ asset: `0x${'1'.repeat(40)}` })]),
      400,
      'not_payable_here',
    ],
    ['one without offers', `${A}/x`, challenge([]), 400, 'not_payable_here'],
    [
      'one that takes Lightning alone',
      `${A}/x`,
      challenge([accept({ network: 'lnbtc:000000000019d6689c085ae165831e93', asset: 'BTC' })]),
      400,
      'not_payable_here',
    ],
    ['one whose values are no text', `${A}/x`, challenge([accept({ network: NO_TEXT })]), 400, 'not_payable_here'],
    ['a broken header', `${A}/x`, { ...base, headers: { 'payment-required': 'e30' } }, 400, 'unreadable_challenge'],
    [
      'a header that is no JSON',
      `${A}/x`,
      { ...base, headers: { 'payment-required': base64('{x') } },
      400,
      'unreadable_challenge',
    ],
    ['a page that wants money', `${A}/x`, { ...HTML, status: 402 }, 400, 'unreadable_challenge'],
    ['a page', `${A}/x`, HTML, 400, 'no_402'],
    ['a path without anything', `${A}/x`, { status: 404, body: '{}' }, 400, 'no_402'],
    ['a server that fails', `${A}/x`, { status: 500, body: '{}' }, 400, 'no_402'],
    ['a slow one', `${A}/x`, slow, 502, 'timeout'],
    ['a huge body', `${A}/x`, huge, 502, 'too_large'],
    ['huge headers', `${A}/x`, { ...base, headers: { 'payment-required': 'A'.repeat(20_000) } }, 502, 'too_large'],
    ['a redirect inside', `${A}/x`, PRIVATE, 400, 'https_only'],
    [
      'a redirect inside, encrypted',
      `${A}/x`,
      { status: 307, headers: { location: 'https://10.0.0.1/' } },
      400,
      'url_not_public',
    ],
    [
      'a redirect to us',
      `${A}/x`,
      { status: 301, headers: { location: `${ORIGIN}/v1/paid/web/check` } },
      400,
      'own_origin',
    ],
    ['a redirect that never ends', `${A}/x`, { status: 302, headers: { location: '/x' } }, 400, 'no_402'],
    [
      'a redirect to plain http',
      `${A}/x`,
      { status: 302, headers: { location: 'http://b.example/' } },
      400,
      'https_only',
    ],
    ['ourselves', `${ORIGIN}/v1/paid/web/check`, base, 400, 'own_origin'],
    ['plain http', 'http://nobody.example/x', base, 400, 'https_only'],
    ['an address inside', 'https://192.168.0.1/x', base, 400, 'url_not_public'],
    ['a name inside', 'https://db.internal/x', base, 400, 'url_not_public'],
    ['a port', 'https://a.good.example:8443/x', base, 400, 'url_not_public'],
    ['credentials', 'https://me:pw@a.good.example/x', base, 400, 'url_not_public'],
    ['a public address without a name', 'https://1.1.1.1/x', base, 400, 'bad_parameter'],
    ['an address with markup', `${A}/<b>`, base, 400, 'bad_parameter'],
    ['no URL', 'weather', base, 400, 'bad_parameter'],
    ['another scheme', 'ftp://a.good.example/x', base, 400, 'url_not_public'],
    ['a long address', `${A}/${'x'.repeat(1000)}`, base, 400, 'bad_parameter'],
  ])('%s', async (_what, url, answer, status, code) => {
    const timeoutMs = answer === slow ? 500 : PATIENT_MS;
    await start({ answers: { '/x': answer, '/v1/paid/web/check': base }, timeoutMs });
    await expect(open.submit(url)).rejects.toMatchObject({ status, code, charged: false });
    await open.market.refresh();
    expect(open.market.all()).toEqual([]);
  });

  test.each([undefined, null, 7, {}, ['https://a.good.example/x']])('no text: %j', async (url) => {
    await start({});
    await expect(open.submit(url)).rejects.toMatchObject({ status: 400, code: 'bad_parameter' });
  });

  test.each(['reset', 'refused', 'encoding-lie'] as const)('a connection that fails: %s', async (fault) => {
    await start({ answers: { '/x': challengeV1() } });
    await open.sellers.setFault(fault);
    await expect(open.submit(`${A}/x`)).rejects.toMatchObject({ status: 502, code: 'unreachable' });
  });
});

describe('a seller’s texts', () => {
  test('are plain, short and never HTML', async () => {
    const loud = `<script>alert(1)</script>\u202eevil\u0007<a href="x">${'long '.repeat(200)}`;
    const resource = { description: loud, serviceName: loud, tags: [loud, '<i>'] };
    const openApi = {
      info: { title: loud },
      paths: { '/x': { get: { summary: loud, parameters: [{ name: 'q', in: 'query', description: loud }] } } },
    };
    await start({
      answers: { '/x': challenge([accept()], { resource }), '/openapi.json': { body: JSON.stringify(openApi) } },
    });
    const { listed } = await open.submit(`${A}/x`);
    const text = JSON.stringify(listed.listing);
    expect(text).toContain('evil');
    expect(text).not.toMatch(/[<>\p{Cc}\u202e]/u);
    expect(text.length).toBeLessThan(4000);
  });

  test('that cannot be read do not prevent a listing: slow, huge, broken or redirected documents count as absent', async () => {
    for (const document of [
      HTML,
      { body: '{' },
      { body: '['.repeat(3_000_000) },
      PRIVATE,
      { status: 302, headers: { location: 'https://b.good.example/openapi.json' } },
    ]) {
      await start({ answers: { '/x': challenge(), '/openapi.json': document, '/.well-known/x402': document } });
      expect((await open.submit(`${A}/x`)).listed.listing.entry.name).toBe('x');
      if (document !== HTML) await open.close();
    }
    await start({ answers: { '/x': challenge(), '*': () => new Promise<Recorded>(() => {}) }, timeoutMs: 1500 });
    expect((await open.submit(`${A}/x`)).isNew).toBe(true);
  });
});

describe('limits', () => {
  test('of one client per hour count every submission, also failed ones', async () => {
    await start({ answers: { '/x': challenge() }, limits: { submitsPerHour: 2 } });
    await open.submit(`${A}/x`);
    await expect(open.submit(`${A}/none`)).rejects.toMatchObject({ code: 'no_402' });
    await expect(open.submit(`${A}/x`)).rejects.toMatchObject({
      status: 429,
      code: 'submit_limited',
      retryAfterSeconds: 3600,
    });
    expect((await open.submit(`${A}/x`, '192.0.2.2')).isNew).toBe(false);
    await open.clock.advance(HOUR_MS);
    expect((await open.submit(`${A}/x`)).isNew).toBe(false);
  });

  test('of an IPv6 /48 per hour are those of four clients, whichever of its networks submits', async () => {
    await start({ answers: { '/x': challenge() }, limits: { submitsPerHour: 1 } });
    const submit = (client: string) => open.submit(`${A}/x`, client);
    for (const n of [1, 2, 3, 4]) await submit(`2001:db8:7:${n}::/64`);
    await expect(submit('2001:db8:7:5::/64')).rejects.toMatchObject({
      code: 'submit_limited',
      retryAfterSeconds: 3600,
    });
    await submit('2001:db8:8:5::/64');
  });

  test('of listings hold for one registered domain, and in total', async () => {
    await start({ answers: { '*': challenge() }, limits: { maxPerHost: 2, maxListings: 3 } });
    await open.submit(`${A}/1`);
    await open.submit('https://b.good.example/1');
    await expect(open.submit('https://c.good.example/1')).rejects.toMatchObject({ status: 409, code: 'host_full' });
    await open.submit('http://plain.example/1');
    await expect(open.submit(`${A}/2`)).rejects.toMatchObject({ status: 503, code: 'market_full' });
    expect((await open.submit(`${A}/1`)).isNew).toBe(false);
  });

  describe('of names hold under a suffix that several owners share', () => {
    const shared = Array.from({ length: 34 }, (_, n) => `n${n}.${n % 2 === 0 ? 'github.io' : 'vercel.app'}`);
    const routes = shared.flatMap((name) => ['1', '2'].map((path) => `http://${name}/${path}`));
    const openFull = () =>
      start({
        answers: { '*': challenge() },
        limits: { maxListings: 1000, maxPerHost: 30 },
        plainHosts: [...shared, 'honest.example'],
      });

    test('let 34 names list no more than two domains may, and leave an honest seller a listing', async () => {
      await openFull();
      const ends = [];
      for (const url of routes)
        ends.push(
          await open.submit(url).then(
            ({ isNew }) => isNew,
            ({ code }) => code,
          ),
        );
      expect([ends.filter((end) => end === true).length, ends.filter((end) => end === 'host_full').length]).toEqual([
        60, 8,
      ]);
      expect((await open.submit('http://honest.example/1')).isNew).toBe(true);
    });

    test('count listings that were stored with a domain of their own towards the shared one too', async () => {
      await openFull();
      for (const url of routes.slice(0, 40)) {
        const { listed } = await open.submit(url);
        // As an earlier version stored it: each name as its own domain.
        await open.store.record(
          { ...listed, listing: JSON.stringify(listed.listing), domain: new URL(url).host },
          1,
          0,
        );
      }
      const more = [];
      for (const url of routes.slice(40))
        more.push(
          await open.submit(url).then(
            ({ isNew }) => isNew,
            ({ code }) => code,
          ),
        );
      expect(more.filter((end) => end === true)).toHaveLength(20);
    });

    test('move a listing that was stored with its own domain to the shared one at its next call', async () => {
      await openFull();
      const { listed } = await open.submit('http://n1.vercel.app/1');
      const { place } = listed;
      await open.store.record({ ...listed, listing: JSON.stringify(listed.listing), domain: 'n1.vercel.app' }, 1, 0);
      expect((await open.store.find(place))?.domain).toBe('n1.vercel.app');
      await open.hours(1);
      expect(await open.store.find(place)).toMatchObject({ domain: 'vercel.app', calls: 2, answered: 2 });
    });
  });

  test('hold for the requests to one host, all submissions together', async () => {
    await start({ answers: { '/x': { status: 500 } } });
    const codes = [];
    for (let n = 0; n < 22; n += 1) codes.push(await open.submit(`${A}/x`).catch(({ code }) => code));
    expect([codes.filter((code) => code === 'no_402').length, codes.at(-1)]).toEqual([20, 'host_limited']);
    expect(open.sellers.received).toHaveLength(20);
  });
});

describe('hourly calls', () => {
  test('are one request each, at a listing’s fixed time of the hour, and update the price and its time', async () => {
    await start({
      answers: { '/x': challenge(), '/openapi.json': { body: '{"paths":{"/x":{"get":{"summary":"X"}}}}' } },
    });
    await open.submit(`${A}/x`);
    const before = open.market.version();
    const dueAt = one()!.dueAt;
    expect(dueAt - open.clock.nowMs()).toBeLessThanOrEqual(HOUR_MS);
    open.sellers.received.length = 0;
    await open.clock.advance(dueAt - open.clock.nowMs() - 1);
    await open.schedule.runDue(new AbortController().signal);
    expect(open.sellers.received).toHaveLength(0);
    open.sellers.answers['/x'] = challenge([accept({ amount: '4000' })]);
    await open.clock.advance(1);
    await open.schedule.runDue(new AbortController().signal);
    expect(open.sellers.received.map(({ url }) => url)).toEqual(['/x']);
    expect(one()).toMatchObject({ pricedAt: dueAt, checkedAt: dueAt, dueAt: dueAt + HOUR_MS, calls: 2, answered: 2 });
    expect(listed()).toMatchObject({ priceUsd: '0.004', name: 'X' });
    expect(open.market.version()).toBe(before + 1);
    await open.hours(1);
    expect([one()?.pricedAt, one()?.calls, open.market.version()]).toEqual([dueAt, 3, before + 1]);
  });

  test('mark a listing offline after three failures, and online after one answer', async () => {
    await start({ answers: { '/x': challenge() } });
    await open.submit(`${A}/x`);
    open.sellers.answers['/x'] = { status: 404, body: '{}' };
    const version = open.market.version();
    await open.hours(2);
    expect([one()?.failures, one()?.reason, open.market.isOnline(`${A}/x`)]).toEqual([2, 'no_402', true]);
    await open.hours(1);
    expect([one()?.failures, open.market.isOnline(`${A}/x`), open.market.listings().length]).toEqual([3, false, 1]);
    expect(open.market.version()).toBe(version);
    open.sellers.answers['/x'] = challenge();
    await open.hours(1);
    expect(one()).toMatchObject({ failures: 0, offlineAt: null, reason: null, calls: 5, answered: 2 });
    expect(open.market.isOnline(`${A}/x`)).toBe(true);
  });

  test('become rarer for an offline listing, which is dropped after 7 days', async () => {
    await start({ answers: { '/x': challenge(), '/y': challenge() } });
    await open.submit(`${A}/x`);
    await open.submit('http://plain.example/y');
    open.sellers.answers['/x'] = { status: 500 };
    open.sellers.received.length = 0;
    await open.hours(3 + 7 * 24 - 6);
    expect(open.market.all().map(({ place }) => place)).toEqual(['plain.example/y', 'a.good.example/x']);
    const calls = open.sellers.received.filter(({ url }) => url === '/x').length;
    expect([calls > 3 + 24, calls < 3 + 40]).toEqual([true, true]);
    await open.hours(12);
    expect(open.market.all().map(({ place }) => place)).toEqual(['plain.example/y']);
    expect(open.market.listings()).toHaveLength(1);
    expect(one()).toMatchObject({ failures: 0, offlineAt: null, calls: 169, answered: 169 });
  });

  test.each<[string, Recorded, string]>([
    ['a redirect, which is not followed', PRIVATE, 'no_402'],
    ['terms that cannot be met here any more', challenge([accept({ network: 'eip155:1' })]), 'not_payable_here'],
    ['a page', { ...HTML, status: 402 }, 'unreadable_challenge'],
    ['no end of answer', { status: 402, headers: {}, body: 'x'.repeat(100_000) }, 'too_large'],
  ])('count as failed: %s', async (_what, answer, code) => {
    await start({ answers: { '/x': challenge() } });
    await open.submit(`${A}/x`);
    open.sellers.answers['/x'] = answer;
    open.sellers.received.length = 0;
    await open.hours(1);
    expect([one()?.failures, one()?.reason, open.sellers.received.length]).toEqual([1, code, 1]);
    expect(listed()?.priceUsd).toBe('0.002');
  });

  test('pause between two calls to one domain, and do not delay those to other domains', async () => {
    await start({ answers: { '*': challenge() } });
    for (const name of ['1', '2', '3']) await open.submit(`${A}/${name}`);
    await open.submit('http://plain.example/4');
    open.sellers.received.length = 0;
    open.plain.received.length = 0;
    await open.clock.advance(2 * HOUR_MS);
    const running = open.schedule.runDue(new AbortController().signal);
    const calls = () => [open.sellers.received.length, open.plain.received.length, ...open.clock.pendingSleeps()];
    await expect.poll(calls).toEqual([1, 1, 2000]);
    await open.clock.advance(2000);
    await expect.poll(calls).toEqual([2, 1, 2000]);
    await open.clock.advance(2000);
    await running;
    expect(open.sellers.received.map(({ url }) => url).sort()).toEqual(['/1', '/2', '/3']);
  });

  test('end when the service stops, without a failure for any listing', async () => {
    await start({ answers: { '/x': challenge() }, timeoutMs: 20_000 });
    await open.submit(`${A}/x`);
    open.sellers.answers['/x'] = () => new Promise<Recorded>(() => {});
    await open.clock.advance(HOUR_MS);
    open.sellers.received.length = 0;
    open.schedule.start();
    await expect.poll(() => open.sellers.received.length).toBe(1);
    await open.schedule.stop();
    expect(await open.store.find('a.good.example/x')).toMatchObject({ failures: 0, calls: 1 });
  });
});

test('a copy in another process shows within seconds what this one wrote', async () => {
  await start({ answers: { '/x': challenge() } });
  const { createMarket } = await import('../../src/discovery/market.ts');
  const limits = { probeIntervalMs: HOUR_MS, submitsPerHour: 0, maxListings: 9, maxPerHost: 9 };
  const { store, caller, clock } = open;
  const other = createMarket({ store, caller, network: NETWORK, limits, clock, log: { info() {}, error() {} } });
  await other.start();
  await open.submit(`${A}/x`);
  expect(other.listings()).toEqual([]);
  await clock.advance(5000);
  await expect.poll(() => other.listings().length).toBe(1);
  await other.stop();
});
