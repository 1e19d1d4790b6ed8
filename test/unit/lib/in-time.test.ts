import { expect, test } from 'vitest';
import { inTime } from '../../../src/lib/in-time.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const NOON = Date.UTC(2026, 2, 3, 12);
const MS = 2000;

function ask(asked: Promise<string>) {
  const clock = createManualClock(NOON);
  return { clock, told: inTime(asked, MS, clock, () => new Error('no answer')) };
}

test('what comes in time counts, whether it is an answer or a failure, and nothing sleeps on', async () => {
  const answered = ask(Promise.resolve('here'));
  expect(await answered.told).toBe('here');
  const failed = ask(Promise.reject(new Error('away')));
  await expect(failed.told).rejects.toThrow('away');
  expect([...answered.clock.sleepers(), ...failed.clock.sleepers()]).toEqual([]);
});

test('what comes too late is told as such, at the moment that it is, and counts for nothing', async () => {
  const { promise, resolve } = Promise.withResolvers<string>();
  const { clock, told } = ask(promise);
  const heard = told.catch((error: Error) => error.message);
  await clock.advance(MS - 1);
  expect(clock.sleepers()).toEqual([1]);
  await clock.advance(1);
  resolve('late');
  expect(await heard).toBe('no answer');
});

test('a failure that comes too late is nobody’s to handle', async () => {
  const { promise, reject } = Promise.withResolvers<string>();
  const { clock, told } = ask(promise);
  const heard = told.catch((error: Error) => error.message);
  const unhandled: unknown[] = [];
  const note = (error: unknown) => unhandled.push(error);
  process.on('unhandledRejection', note);
  try {
    await clock.advance(MS);
    reject(new Error('away'));
    // Node tells of it after the turn in which it came.
    await new Promise((turn) => setImmediate(turn));
    expect([await heard, unhandled]).toEqual(['no answer', []]);
  } finally {
    process.off('unhandledRejection', note);
  }
});
