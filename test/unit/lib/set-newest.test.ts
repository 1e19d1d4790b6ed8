import { expect, test } from 'vitest';
import { setNewest } from '../../../src/lib/memory.ts';

test('the oldest key is deleted, and only when there are more than allowed', () => {
  const map = new Map<string, number>();
  for (const [at, key] of ['a', 'b', 'c'].entries()) setNewest(map, key, at, 3);
  expect([...map.keys()]).toEqual(['a', 'b', 'c']);
  setNewest(map, 'd', 3, 3);
  expect([...map]).toEqual([
    ['b', 1],
    ['c', 2],
    ['d', 3],
  ]);
});

test('a key that is set again is the newest, and evicts no other key', () => {
  const map = new Map([
    ['a', 1],
    ['b', 2],
  ]);
  setNewest(map, 'a', 3, 2);
  expect([...map]).toEqual([
    ['b', 2],
    ['a', 3],
  ]);
  setNewest(map, 'c', 4, 2);
  expect([...map.keys()]).toEqual(['a', 'c']);
});
