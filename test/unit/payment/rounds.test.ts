import { expect, test } from 'vitest';
import { createRounds } from '../../../src/payment/rounds.ts';

test('concurrent callers share a running round, the next caller starts a new one, and a failed round is logged', async () => {
  const warned: object[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const work = () => new Promise<void>((done, fail) => ends.push((error) => (error ? fail(error) : done())));
  const round = createRounds(work, { warn: (detail) => void warned.push(detail) });
  const both = [round(), round()];
  expect(ends).toHaveLength(1);
  ends[0]?.(new Error('the disk is away'));
  await Promise.all(both);
  expect(warned).toEqual([{ err: new Error('the disk is away') }]);
  const third = round();
  let isIdle = false;
  const idle = round.idle().then(() => {
    isIdle = true;
  });
  await new Promise((next) => setImmediate(next));
  expect([ends.length, isIdle]).toEqual([2, false]);
  ends[1]?.();
  await Promise.all([third, idle]);
});
