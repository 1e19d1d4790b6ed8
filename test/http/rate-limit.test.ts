import { afterEach, describe, expect, it } from 'vitest';
import { createStillClock, createTestApp } from './harness.ts';

type Test = Awaited<ReturnType<typeof createTestApp>>;
let t: Test;
afterEach(() => t.app.close());

const FREE = '/v1/chain/count';
const PAID = '/v1/paid/chain/thing';
const from = (remoteAddress: string, url = FREE, forwarded?: string) =>
  t.app.inject({ url, remoteAddress, ...(forwarded ? { headers: { 'x-forwarded-for': forwarded } } : {}) });
const statuses = async (requests: Promise<{ statusCode: number }>[]) =>
  (await Promise.all(requests)).map(({ statusCode }) => statusCode);

describe('a limit', () => {
  it('is stated on every answer and ends in 429 until its minute is over', async () => {
    const clock = createStillClock();
    t = await createTestApp({ clock, env: { RATE_LIMIT_FREE_PER_MINUTE: '2' } });
    const first = await from('192.0.2.1');
    expect(first.headers).toMatchObject({
      'ratelimit-limit': '2',
      'ratelimit-remaining': '1',
      'ratelimit-reset': '60',
    });
    expect(first.headers['retry-after']).toBeUndefined();
    clock.now += 45_500;
    await from('192.0.2.1');
    const refused = await from('192.0.2.1');
    expect(refused.statusCode).toBe(429);
    expect(refused.headers).toMatchObject({ 'ratelimit-remaining': '0', 'ratelimit-reset': '15', 'retry-after': '15' });
    expect(refused.json()).toMatchObject({ code: 'rate_limited', charged: false });
    clock.now += 14_499;
    expect((await from('192.0.2.1')).statusCode).toBe(429);
    clock.now += 1;
    expect((await from('192.0.2.1')).statusCode).toBe(200);
  });

  it('comes before the 402, and one group does not use up the other', async () => {
    t = await createTestApp({ env: { RATE_LIMIT_FREE_PER_MINUTE: '1', RATE_LIMIT_PRICED_PER_MINUTE: '2' } });
    expect(await statuses([from('::1', PAID), from('::1', PAID), from('::1', PAID)])).toEqual([402, 402, 429]);
    expect(await statuses([from('::1'), from('::1')])).toEqual([200, 429]);
    expect(await statuses([from('::1', '/livez'), from('::1', '/readyz')])).toEqual([200, 200]);
  });

  it.each([
    ['x402', { 'payment-signature': 'e30=' }],
    ['x402 of version 1', { 'x-payment': 'e30=' }],
    ['MPP', { authorization: 'Payment e30' }],
    ['L402', { authorization: `L402 AAAA:${'0'.repeat(64)}` }],
  ])('says of a payment over %s that it was not looked at, and not that nothing was charged', async (_, headers) => {
    t = await createTestApp({ env: { RATE_LIMIT_PRICED_PER_MINUTE: '1' } });
    await from('::1', PAID);
    const refused = await t.app.inject({ url: PAID, remoteAddress: '::1', headers });
    expect([refused.statusCode, refused.json().charged]).toEqual([429, 'unknown']);
    expect(refused.json().detail).toContain('present the same one again');
    const other = { authorization: 'Basic YTpi' };
    const unpaid = await t.app.inject({ url: PAID, remoteAddress: '::1', headers: other });
    expect([unpaid.statusCode, unpaid.json().charged]).toEqual([429, false]);
  });

  it('is off at 0, and adds no header', async () => {
    t = await createTestApp({ env: { RATE_LIMIT_FREE_PER_MINUTE: '0', RATE_LIMIT_PRICED_PER_MINUTE: '0' } });
    const answers = await Promise.all(Array.from({ length: 50 }, () => from('192.0.2.1')));
    for (const { statusCode, headers } of answers)
      expect([statusCode, headers['ratelimit-limit']]).toEqual([200, undefined]);
  });

  it('counts an IPv6 /64 as one client, and its neighbour as another', async () => {
    t = await createTestApp({ env: { RATE_LIMIT_FREE_PER_MINUTE: '1' } });
    expect(await statuses([from('2001:db8:0:1::1'), from('2001:db8:0:1:ffff::2'), from('2001:db8:0:2::1')])).toEqual([
      200, 429, 200,
    ]);
    expect(await statuses([from('192.0.2.7'), from('::ffff:192.0.2.7')])).toEqual([200, 429]);
  });

  it('counts an IPv6 /48 as four clients, whichever of its /64s calls, and its neighbour apart', async () => {
    t = await createTestApp({ env: { RATE_LIMIT_FREE_PER_MINUTE: '2', RATE_LIMIT_PRICED_PER_MINUTE: '1' } });
    const network = (n: number) => `2001:db8:7:${n.toString(16)}::1`;
    const calls = (url: string, count: number) =>
      statuses(Array.from({ length: count }, (_, n) => from(network(n), url)));
    expect(await calls(FREE, 10)).toEqual([...Array(8).fill(200), 429, 429]);
    expect(await calls(PAID, 6)).toEqual([...Array(4).fill(402), 429, 429]);
    expect(await statuses([from('2001:db8:8::1'), from('2001:db8:8::1', PAID)])).toEqual([200, 402]);
  });

  it('states the limit that is nearer: the client’s, or its site’s when neighbours have used more of that', async () => {
    t = await createTestApp({ env: { RATE_LIMIT_FREE_PER_MINUTE: '2' } });
    const stated = async (n: number) => {
      const { headers, statusCode } = await from(`2001:db8:7:${n.toString(16)}::1`);
      return [statusCode, headers['ratelimit-limit'], headers['ratelimit-remaining']];
    };
    expect(await stated(0)).toEqual([200, '2', '1']);
    for (let n = 1; n < 7; n++) await stated(n);
    expect(await stated(7)).toEqual([200, '8', '0']);
    expect(await stated(8)).toEqual([429, '8', '0']);
    const refused = await from('2001:db8:7:9::1');
    expect(refused.headers['retry-after']).toBe('60');
    expect(refused.json().detail).toMatch(/^More than 8 requests a minute from one \/48 network\./);
    expect((await from('192.0.2.1')).headers).toMatchObject({ 'ratelimit-limit': '2', 'ratelimit-remaining': '1' });
  });

  it('says of a request with a payment that the payment was not looked at, and of any other that nothing was charged', async () => {
    t = await createTestApp({ env: { RATE_LIMIT_FREE_PER_MINUTE: '1', RATE_LIMIT_PRICED_PER_MINUTE: '1' } });
    await from('192.0.2.1', PAID);
    const paid = await t.app.inject({
      url: PAID,
      remoteAddress: '192.0.2.1',
      headers: { 'payment-signature': 'e30=' },
    });
    expect([paid.statusCode, paid.json()]).toMatchObject([429, { code: 'rate_limited', charged: 'unknown' }]);
    expect(paid.json().detail).toContain('present the same one again');
    const unpaid = await from('192.0.2.1', PAID);
    expect([unpaid.statusCode, unpaid.json()]).toMatchObject([429, { code: 'rate_limited', charged: false }]);
    expect(unpaid.json().detail).not.toContain('payment');
  });

  it('says of a request that can never be sold that nothing was charged, with a payment or without', async () => {
    t = await createTestApp();
    const headers = { 'payment-signature': 'e30=' };
    const tooLong = await t.app.inject({ url: `${PAID}?id=${'x'.repeat(8200)}`, headers });
    expect([tooLong.statusCode, tooLong.json().charged]).toEqual([414, false]);
    const malformed = await t.app.inject({ url: '/v1/paid/%zz', headers });
    expect([malformed.statusCode, malformed.json().charged]).toEqual([400, false]);
    const other = await t.app.inject({ method: 'POST', url: PAID, headers });
    expect([other.statusCode, other.json().charged]).toEqual([405, false]);
  });
});

describe('behind proxies', () => {
  it('believes only a proxy that is named', async () => {
    t = await createTestApp({ env: { RATE_LIMIT_FREE_PER_MINUTE: '1' } });
    expect(await statuses([from('192.0.2.1', FREE, '198.51.100.1'), from('192.0.2.1', FREE, '198.51.100.2')])).toEqual([
      200, 429,
    ]);
  });

  it('counts the address that the proxy saw, so that a forged leftmost one has no effect', async () => {
    t = await createTestApp({ env: { RATE_LIMIT_FREE_PER_MINUTE: '1', TRUSTED_PROXIES: '10.0.0.0/8' } });
    const forged = (fake: string) => from('10.0.0.1', FREE, `${fake}, 203.0.113.9, 10.0.0.2`);
    expect(await statuses([forged('198.51.100.1'), forged('198.51.100.2')])).toEqual([200, 429]);
    // Another client of the same proxy counts as another client.
    expect(await statuses([from('10.0.0.1', FREE, '198.51.100.1, 203.0.113.10')])).toEqual([200]);
    expect(await statuses([from('192.0.2.1', FREE, '203.0.113.11'), from('192.0.2.1', FREE, '203.0.113.12')])).toEqual([
      200, 429,
    ]);
  });
});
