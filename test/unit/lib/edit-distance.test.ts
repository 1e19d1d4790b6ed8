import { expect, test } from 'vitest';
import { editDistance } from '../../../src/lib/edit-distance.ts';

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
