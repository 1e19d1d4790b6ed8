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
  it('is told on every answer and ends in 429 until its minute is over', async () => {
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

  it('is off at 0, without a trace', async () => {
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
});

describe('behind proxies', () => {
  it('believes nobody who is not a named proxy', async () => {
    t = await createTestApp({ env: { RATE_LIMIT_FREE_PER_MINUTE: '1' } });
    expect(await statuses([from('192.0.2.1', FREE, '198.51.100.1'), from('192.0.2.1', FREE, '198.51.100.2')])).toEqual([
      200, 429,
    ]);
  });

  it('counts the address that the proxy saw, so that a forged leftmost one does not help', async () => {
    t = await createTestApp({ env: { RATE_LIMIT_FREE_PER_MINUTE: '1', TRUSTED_PROXIES: '10.0.0.0/8' } });
    const forged = (fake: string) => from('10.0.0.1', FREE, `${fake}, 203.0.113.9, 10.0.0.2`);
    expect(await statuses([forged('198.51.100.1'), forged('198.51.100.2')])).toEqual([200, 429]);
    // The twin: another client of the same proxy is another client.
    expect(await statuses([from('10.0.0.1', FREE, '198.51.100.1, 203.0.113.10')])).toEqual([200]);
    expect(await statuses([from('192.0.2.1', FREE, '203.0.113.11'), from('192.0.2.1', FREE, '203.0.113.12')])).toEqual([
      200, 429,
    ]);
  });
});
