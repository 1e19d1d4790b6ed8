import { expect, test } from 'vitest';
import { createFirstSeen } from '../../../src/endpoints/chain/tx.ts';

test('a key keeps the time of its first call', () => {
  const seen = createFirstSeen(3);
  expect([seen('a', 10), seen('a', 20), seen('b', 30), seen('a', 40)]).toEqual([10, 10, 30, 10]);
});

test('the key that came first is forgotten when there are too many, however often it was asked for', () => {
  const seen = createFirstSeen(2);
  for (const [key, at] of [
    ['a', 1],
    ['b', 2],
    ['a', 3],
    ['c', 4],
  ] as const)
    seen(key, at);
  expect([seen('b', 5), seen('c', 5)]).toEqual([2, 4]);
  expect(seen('a', 6)).toBe(6);
});
