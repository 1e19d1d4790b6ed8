import { expect, test } from 'vitest';
import { editDistance, nearest } from '../../../src/lib/edit-distance.ts';

test.each([
  ['fees', 'fees', 0],
  ['fees', 'fee', 1],
  ['fees', 'feeds', 1],
  ['forcast', 'forecast', 1],
  ['forecsat', 'forecast', 2],
  ['', 'ab', 2],
  ['ab', '', 2],
])('from %j to %j it takes %i edits', (a, b, edits) => {
  expect(editDistance(a, b, 2)).toBe(edits);
});

test.each([
  ['fees', 'deploys'],
  ['abcd', 'wxyz'],
  ['', 'abc'],
])('from %j to %j it takes more edits than are asked about', (a, b) => {
  expect(editDistance(a, b, 2)).toBe(3);
});

test('the nearest of several is the first with the fewest edits, and none is farther than asked about', () => {
  const known = ['/fees', '/free', '/fee'];
  expect(nearest('/fee', known, 2)).toEqual({ name: '/fee', edits: 0 });
  expect(nearest('/fre', known, 2)).toEqual({ name: '/free', edits: 1 });
  expect(nearest('/fe', known, 2)).toEqual({ name: '/fee', edits: 1 });
  expect(nearest('/feed', known.slice(0, 2), 2)).toEqual({ name: '/fees', edits: 1 });
  expect([nearest('/docs', known, 2), nearest('/fee', [], 2)]).toEqual([null, null]);
});
