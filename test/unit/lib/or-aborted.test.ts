import { expect, test } from 'vitest';
import { orAborted } from '../../../src/lib/tasks.ts';

test('a promise that settles before the abort ends as it would have without a signal', async () => {
  const { signal } = new AbortController();
  await expect(orAborted(Promise.resolve(7), signal)).resolves.toBe(7);
  await expect(orAborted(Promise.reject(new Error('failed')), signal)).rejects.toThrow('failed');
});

test('an abort rejects with the signal’s reason, before and during the wait, and a later result changes nothing', async () => {
  const control = new AbortController();
  const later = Promise.withResolvers<number>();
  const waiting = orAborted(later.promise, control.signal);
  control.abort(new Error('the caller left'));
  await expect(waiting).rejects.toThrow('the caller left');
  later.resolve(7);
  await expect(waiting).rejects.toThrow('the caller left');
  await expect(orAborted(Promise.resolve(7), control.signal)).rejects.toThrow('the caller left');
});

test('a failure that the abort itself causes is reported as the abort', async () => {
  const control = new AbortController();
  const failing = new Promise<never>((_, reject) => {
    control.signal.addEventListener('abort', () => reject(new Error('the socket closed')));
  });
  const waiting = orAborted(failing, control.signal);
  control.abort(new Error('the caller left'));
  await expect(waiting).rejects.toThrow('the caller left');
});
