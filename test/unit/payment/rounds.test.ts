import { expect, test } from 'vitest';
import { createRounds } from '../../../src/lib/tasks.ts';

test('concurrent callers share a running round, the next caller starts a new one, and a failed round is logged', async () => {
  const warned: object[] = [];
  const ends: ((error?: Error) => void)[] = [];
  const work = () => new Promise<void>((done, fail) => ends.push((error) => (error ? fail(error) : done())));
  const round = createRounds(work, { info: () => {}, warn: (detail) => void warned.push(detail) });
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

test('rounds that fail in a row are one line, and the first that succeeds is another', async () => {
  const lines: string[] = [];
  const note = (level: string) => (detail: object, message: string) =>
    void lines.push(`${level} ${message.split(';')[0]} ${JSON.stringify(detail)}`);
  let fails = true;
  const round = createRounds(() => (fails ? Promise.reject(new Error('away')) : Promise.resolve()), {
    info: note('info'),
    warn: note('warn'),
  });
  const isFailing: boolean[] = [];
  for (const failing of [true, true, true, false, false, true]) {
    fails = failing;
    await round();
    isFailing.push(round.isFailing());
  }
  expect(isFailing).toEqual([true, true, true, false, false, true]);
  expect(lines).toEqual([
    'warn maintenance failed {"err":{}}',
    'info maintenance works again {"rounds":3}',
    'warn maintenance failed {"err":{}}',
  ]);
});
