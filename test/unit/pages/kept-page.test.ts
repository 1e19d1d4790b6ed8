import { expect, test } from 'vitest';
import { keepPage } from '../../../src/pages/send.ts';
import { createManualClock } from '../../support/manual-clock.ts';

const open = (answers: (string | Error)[]) => {
  const clock = createManualClock(0);
  let made = 0;
  const page = keepPage(clock, async () => {
    const answer = answers[made] ?? 'more';
    made += 1;
    if (answer instanceof Error) throw answer;
    return answer;
  });
  return { clock, made: () => made, read: async () => (await page()).forms.identity.bytes.toString() };
};

test('any number of readers cost one page per second', async () => {
  const { clock, made, read } = open(['first', 'second']);
  expect(await Promise.all(Array.from({ length: 50 }, read))).toEqual(Array(50).fill('first'));
  await clock.advance(999);
  expect(await read()).toBe('first');
  await clock.advance(1);
  expect([await read(), made()]).toEqual(['second', 2]);
});

test('a failed page is not kept', async () => {
  const { read } = open([new Error('not now'), 'after all']);
  await expect(read()).rejects.toThrow('not now');
  expect(await read()).toBe('after all');
});
