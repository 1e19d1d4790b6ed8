import { expect, test } from 'vitest';
import { progressLine } from '../../../dev/serve.ts';

test('the collector’s progress says how many of the chain’s blocks it has read', () => {
  expect(progressLine(null, 20)).toBe('  none of the chain’s 20 blocks is collected yet');
  expect(progressLine(12, 20)).toBe('  12 of the chain’s 20 blocks are collected');
  // A block may be mined between the two reads.
  expect(progressLine(21, 20)).toBe('  all 20 blocks of the chain are collected');
});
