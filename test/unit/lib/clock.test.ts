import { getEventListeners } from 'node:events';
import { expect, test } from 'vitest';
import { nowSeconds, systemClock } from '../../../src/lib/clock.ts';

test('a sleep that is cut short rejects with the very reason, and one that was never to begin does too', async () => {
  const control = new AbortController();
  const asleep = systemClock.sleep(60_000, control.signal);
  control.abort('woken');
  await expect(asleep).rejects.toBe('woken');
  await expect(systemClock.sleep(0, control.signal)).rejects.toBe('woken');
});

test('a sleep that was slept out resolves, leaves nothing behind, and cannot be cut short any more', async () => {
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
