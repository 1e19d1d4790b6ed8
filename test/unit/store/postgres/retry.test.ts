import { DatabaseError } from 'pg';
import { expect, test } from 'vitest';
import { createRetry } from '../../../../src/store/db/connections.ts';

const sqlError = (code: string) => Object.assign(new DatabaseError(code, 0, 'error'), { code });

/** A transaction that fails with these errors one after the other and then succeeds, on a clock that only sleeps advance. */
function stage(failures: readonly unknown[], attemptMs = 0) {
  let [now, attempts, retries] = [1000, 0, 0];
  const sleeps: number[] = [];
  const clock = {
    nowMs: () => now,
    sleep: async (ms: number) => {
      sleeps.push(ms);
      now += ms;
    },
  };
  const retry = createRetry(clock, () => void retries++);
  const run = () =>
    retry(async () => {
      now += attemptMs;
      const failure = failures[attempts++];
      if (failure) throw failure;
      return 'done';
    });
  return { run, seen: () => ({ attempts, retries }), sleeps };
}

test.each(['40001', '40P01', 'CR000'])('an aborted transaction (%s) is run again until it succeeds', async (code) => {
  const { run, seen, sleeps } = stage([sqlError(code), sqlError(code), sqlError(code)]);
  expect(await run()).toBe('done');
  expect(seen()).toEqual({ attempts: 4, retries: 3 });
  // The first retry has no pause, and the next ones have random pauses that grow.
  expect(sleeps).toHaveLength(2);
  expect(sleeps.every((ms, at) => ms >= 0 && ms <= 2 ** (at + 1))).toBe(true);
});

test.each([
  ['a broken constraint', sqlError('23505')],
  ['a statement that took too long', sqlError('57014')],
  ['an unknown outcome', sqlError('40003')],
  ['a lost connection', new Error('Connection terminated unexpectedly')],
  ['an error that only looks like one', Object.assign(new Error('x'), { code: '40001' })],
])('%s is not run again', async (_what, failure) => {
  const { run, seen } = stage([failure]);
  await expect(run()).rejects.toBe(failure);
  expect(seen()).toEqual({ attempts: 1, retries: 0 });
});

test('a transaction that is always aborted rejects after five seconds, with the database’s last error', async () => {
  const { run, seen } = stage(
    Array.from({ length: 10_000 }, () => sqlError('40001')),
    10,
  );
  await expect(run()).rejects.toMatchObject({ code: '40001' });
  expect(seen().attempts).toBeGreaterThan(50);
  expect(seen().attempts).toBeLessThan(502);
});
