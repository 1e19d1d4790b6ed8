import { expect, test } from 'vitest';
import { inTime } from '../../../src/lib/tasks.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const NOON = Date.UTC(2026, 2, 3, 12);
const MS = 2000;

function ask(asked: Promise<string>) {
  const clock = createManualClock(NOON);
  return { clock, outcome: inTime(asked, MS, clock, () => new Error('no answer')) };
}

test('a result in time is passed on, an answer or a failure, and no timer is left', async () => {
  const answered = ask(Promise.resolve('here'));
  expect(await answered.outcome).toBe('here');
  const failed = ask(Promise.reject(new Error('away')));
  await expect(failed.outcome).rejects.toThrow('away');
  expect([...answered.clock.pendingSleeps(), ...failed.clock.pendingSleeps()]).toEqual([]);
});

test('a late result is rejected exactly at the time-out and then ignored', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const { clock, outcome } = ask(promise);
  const heard = outcome.catch((error: Error) => error.message);
  await clock.advance(MS - 1);
  expect(clock.pendingSleeps()).toEqual([1]);
  await clock.advance(1);
  resolve('late');
  expect(await heard).toBe('no answer');
});

test('a late failure causes no unhandled rejection', async () => {
  const { promise, reject } = Promise.withResolvers<string>();
  const { clock, outcome } = ask(promise);
  const heard = outcome.catch((error: Error) => error.message);
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', note);
  try {
    await clock.advance(MS);
    reject(new Error('away'));
    // Node reports it after the turn in which it came.
    await new Promise((turn) => setImmediate(turn));
    expect([await heard, unhandled]).toEqual(['no answer', []]);
  } finally {
    process.off('unhandledRejection', note);
  }
});
