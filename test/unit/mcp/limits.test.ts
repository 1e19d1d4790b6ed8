import { describe, expect, test } from 'vitest';
import type { Clock } from '../../../src/lib/clock.ts';
import { createMinuteWindows, openClientWindows } from '../../../src/lib/limits/count.ts';
import { countCall } from '../../../src/mcp/mount.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const windowsOf = (clock: Clock) => openClientWindows(() => createMinuteWindows(clock), 'calls');

describe('the limit of calls', () => {
  test('refuses the call after the last, says when the next may come, and then admits it', () => {
    const clock = createManualClock(0);
    const limit = { perMinute: 2, windows: windowsOf(clock) };
    const count = (client = 'a') => countCall(limit, client, false);
    expect([count().refusal, count().refusal]).toEqual([null, null]);
    const { refusal, headers } = count();
    expect(refusal).toMatchObject({ status: 429, code: 'rate_limited', retryAfterSeconds: 60 });
    expect(headers).toEqual({ 'ratelimit-limit': '2', 'ratelimit-remaining': '0', 'ratelimit-reset': '60' });
    expect(count('b').refusal).toBeNull();
    clock.advance(60_000);
    expect(count().refusal).toBeNull();
  });

  test('of 0 is off, and adds no header', () => {
    const limit = { perMinute: 0, windows: windowsOf(createManualClock(0)) };
    for (let call = 0; call < 10; call++) expect(countCall(limit, 'a', false)).toEqual({ headers: {}, refusal: null });
  });

  test('counts an IPv6 /48 as four clients, and states the nearer limit', () => {
    const limit = { perMinute: 1, windows: windowsOf(createManualClock(0)) };
    const count = (n: number) => countCall(limit, `2001:db8:7:${n}::/64`, false);
    expect([1, 2, 3, 4].map((n) => count(n).refusal)).toEqual([null, null, null, null]);
    const { refusal, headers } = count(5);
    expect(refusal).toMatchObject({ status: 429, code: 'rate_limited', retryAfterSeconds: 60 });
    expect(headers).toMatchObject({ 'ratelimit-limit': '4', 'ratelimit-remaining': '0' });
    expect(countCall(limit, '2001:db8:8:0::/64', false).refusal).toBeNull();
  });

  test('says of a call with a payment that the payment was not looked at', () => {
    const limit = { perMinute: 1, windows: windowsOf(createManualClock(0)) };
    const refused = (isPaid: boolean) => countCall(limit, 'a', isPaid).refusal?.charged;
    expect([refused(true), refused(true), refused(false)]).toEqual([undefined, 'unknown', false]);
  });
});
