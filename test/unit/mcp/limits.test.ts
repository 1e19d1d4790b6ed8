import { describe, expect, test } from 'vitest';
import { createMinuteWindows } from '../../../src/lib/minute-windows.ts';
import { countCall } from '../../../src/mcp/limits.ts';
import { createManualClock } from '../../support/manual-clock.ts';

describe('the limit of calls', () => {
  test('refuses the call after the last, says when the next may come, and then lets it', () => {
    const clock = createManualClock(0);
    const limit = { perMinute: 2, windows: createMinuteWindows(clock) };
    const count = (client = 'a') => countCall(limit, client);
    expect([count().refusal, count().refusal]).toEqual([null, null]);
    const { refusal, headers } = count();
    expect(refusal).toMatchObject({ status: 429, code: 'rate_limited', retryAfterSeconds: 60 });
    expect(headers).toEqual({ 'ratelimit-limit': '2', 'ratelimit-remaining': '0', 'ratelimit-reset': '60' });
    expect(count('b').refusal).toBeNull();
    clock.advance(60_000);
    expect(count().refusal).toBeNull();
  });

  test('of 0 is off, and says nothing', () => {
    const limit = { perMinute: 0, windows: createMinuteWindows(createManualClock(0)) };
    for (let call = 0; call < 10; call++) expect(countCall(limit, 'a')).toEqual({ headers: {}, refusal: null });
  });
});
