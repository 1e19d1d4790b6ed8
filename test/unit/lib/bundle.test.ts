import { expect, test } from 'vitest';
import { createBundle } from '../../../src/lib/tasks.ts';

const turn = () => new Promise((next) => setImmediate(next));

test('the items of one event loop turn are sent as one message in their order, and those of the next turn as another', async () => {
  const sent: (readonly number[])[] = [];
  const say = createBundle<number>((items) => sent.push(items));
  for (const item of [3, 1, 2]) say(item);
  expect(sent).toEqual([]);
  await turn();
  expect(sent).toEqual([[3, 1, 2]]);
  say(4);
  await turn();
  await turn();
  expect(sent).toEqual([[3, 1, 2], [4]]);
});

test('an item that comes while a message is sent is part of the next one', async () => {
  const sent: (readonly string[])[] = [];
  const say = createBundle<string>((items) => {
    sent.push(items);
    if (sent.length === 1) say('answer');
  });
  say('question');
  await turn();
  await turn();
  expect(sent).toEqual([['question'], ['answer']]);
});
