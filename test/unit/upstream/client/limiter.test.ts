import { setTimeout as delay } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { createLimiter, LimiterFull } from '../../../../src/upstream/client/limiter.ts';

const signal = new AbortController().signal;

test('runs up to the limit at once, and the others in their order', async () => {
  const limiter = createLimiter(2, 10);
  const started: number[] = [];
  let running = 0;
  let most = 0;
  await Promise.all(
    Array.from({ length: 8 }, (_, n) =>
      limiter.run(signal, async () => {
        started.push(n);
        running += 1;
        most = Math.max(most, running);
        await delay(5);
        running -= 1;
      }),
    ),
  );
  expect(most).toBe(2);
  expect(started).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
});

test('refuses a task when the queue is full or it waited too long, and loses no place', async () => {
  const limiter = createLimiter(1, 2, 30);
  const held = Promise.withResolvers<void>();
  const long = limiter.run(signal, () => held.promise);
  const late = [limiter.run(signal, async () => 'a'), limiter.run(signal, async () => 'b')];
  await expect(limiter.run(signal, async () => 'c')).rejects.toThrow(LimiterFull);
  await Promise.all(late.map((task) => expect(task).rejects.toThrow(LimiterFull)));
  held.resolve();
  await long;
  expect(await limiter.run(signal, async () => 'd')).toBe('d');
});

test('gives the place of a task that aborts or fails to the next task', async () => {
  const limiter = createLimiter(1, 5);
  const control = new AbortController();
  const first = limiter.run(signal, async () => {
    await delay(20);
    throw new Error('failed');
  });
  const left = limiter.run(control.signal, async () => 'never');
  const third = limiter.run(signal, async () => 'third');
  control.abort(new Error('left'));
  await expect(left).rejects.toThrow('left');
  await expect(first).rejects.toThrow('failed');
  expect(await third).toBe('third');
});
