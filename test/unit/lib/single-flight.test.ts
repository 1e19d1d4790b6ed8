import { expect, test } from 'vitest';
import { createSingleFlight } from '../../../src/lib/tasks.ts';

/** A task that ends when the test says so, with the signals that its runs got. */
function openTask() {
  const end = Promise.withResolvers<string>();
  const signals: AbortSignal[] = [];
  const task = (signal: AbortSignal): Promise<string> => {
    signals.push(signal);
    return end.promise;
  };
  return { ...end, signals, task };
}

test('callers of one key at the same time share a run, and the next caller starts its own', async () => {
  const share = createSingleFlight<string>();
  const { signals, task, resolve } = openTask();
  const callers = [share('a', undefined, task), share('a', undefined, task), share('b', undefined, task)];
  resolve('done');
  expect(await Promise.all(callers)).toEqual(['done', 'done', 'done']);
  expect(signals).toHaveLength(2);
  await share('a', undefined, task);
  expect(signals).toHaveLength(3);
});

test('a key may be an object, which is compared by identity', async () => {
  const share = createSingleFlight<string, object>();
  const { signals, task, resolve } = openTask();
  const key = {};
  const callers = [share(key, undefined, task), share(key, undefined, task), share({}, undefined, task)];
  resolve('done');
  await Promise.all(callers);
  expect(signals).toHaveLength(2);
});

test('a failed run fails for all its callers, and for none that comes later', async () => {
  const share = createSingleFlight<string>();
  const { task, reject } = openTask();
  const callers = [share('a', undefined, task), share('a', undefined, task)];
  reject(new Error('failed'));
  for (const { status } of await Promise.allSettled(callers)) expect(status).toBe('rejected');
  expect(await share('a', undefined, async () => 'done')).toBe('done');
});

test('a caller that leaves gets its own reason; the run ends with the last caller, and no later caller joins it', async () => {
  const share = createSingleFlight<string>();
  const { signals, task } = openTask();
  const [first, last] = [new AbortController(), new AbortController()];
  const [left, stayed] = [share('a', first.signal, task), share('a', last.signal, task)];
  first.abort(new Error('the first left'));
  await expect(left).rejects.toThrow('the first left');
  expect(signals[0]?.aborted).toBe(false);
  last.abort(new Error('the last left'));
  await expect(stayed).rejects.toThrow('the last left');
  expect(signals[0]?.reason).toEqual(new Error('the last left'));
  expect(await share('a', undefined, async () => 'another run')).toBe('another run');
});

test('a caller that has left already starts nothing', async () => {
  const share = createSingleFlight<string>();
  const { signals, task } = openTask();
  await expect(share('a', AbortSignal.abort(new Error('left')), task)).rejects.toThrow('left');
  expect(signals).toEqual([]);
});
