import { DatabaseError } from 'pg';
import { expect, test } from 'vitest';
import { createRetry } from '../../../../src/store/postgres/retry.ts';

const told = (code: string) => Object.assign(new DatabaseError(code, 0, 'error'), { code });

/** A transaction that fails with these one after the other and then works, on a clock that moves only when somebody sleeps. */
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

test.each(['40001', '40P01', 'CR000'])(
  'a transaction that was undone (%s) is run again until it is done',
  async (code) => {
    const { run, seen, sleeps } = stage([told(code), told(code), told(code)]);
    expect(await run()).toBe('done');
    expect(seen()).toEqual({ attempts: 4, retries: 3 });
    // At once, then after random pauses that grow.
    expect(sleeps).toHaveLength(2);
    expect(sleeps.every((ms, at) => ms >= 0 && ms <= 2 ** (at + 1))).toBe(true);
  },
);

test.each([
  ['a broken constraint', told('23505')],
  ['a statement that took too long', told('57014')],
  ['an end that the database does not know', told('40003')],
  ['a lost connection', new Error('Connection terminated unexpectedly')],
  ['an error that only looks like one', Object.assign(new Error('x'), { code: '40001' })],
])('%s is not run again', async (_what, failure) => {
  const { run, seen } = stage([failure]);
  await expect(run()).rejects.toBe(failure);
  expect(seen()).toEqual({ attempts: 1, retries: 0 });
});

test('a transaction that is undone for ever ends after five seconds, with what the database told last', async () => {
  const { run, seen } = stage(
    Array.from({ length: 10_000 }, () => told('40001')),
    10,
  );
  await expect(run()).rejects.toMatchObject({ code: '40001' });
  expect(seen().attempts).toBeGreaterThan(50);
  expect(seen().attempts).toBeLessThan(502);
});
