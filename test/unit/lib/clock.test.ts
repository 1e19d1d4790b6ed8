import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { nowSeconds, systemClock } from '../../../src/lib/clock.ts';

test('an aborted sleep rejects with the signal’s reason, also when the signal was aborted before', async () => {
  const control = new AbortController();
  const asleep = systemClock.sleep(60_000, control.signal);
  control.abort('woken');
  await expect(asleep).rejects.toBe('woken');
  await expect(systemClock.sleep(0, control.signal)).rejects.toBe('woken');
});

test('a finished sleep resolves, leaves no listener behind, and can no longer be aborted', async () => {
  const control = new AbortController();
  const before = systemClock.nowMs();
  await systemClock.sleep(2, control.signal);
  expect(systemClock.nowMs()).toBeGreaterThanOrEqual(before);
  expect(getEventListeners(control.signal, 'abort')).toEqual([]);
  control.abort('too late');
  await expect(systemClock.sleep(1)).resolves.toBeUndefined();
});

test('seconds are whole and never ahead of the clock', () => {
  expect(nowSeconds({ ...systemClock, nowMs: () => 1999 })).toBe(1);
});
