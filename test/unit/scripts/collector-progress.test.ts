import { expect, test } from 'vitest';
import { progressLine } from '../../../src/embedded/collector-progress.ts';

test('the collector’s progress is a bar, a share, a pace and the time left', () => {
  expect(progressLine({ share: 0.5, blocksPerSecond: 24.4, secondsLeft: 61.2 })).toBe(
    '  [############............] 50 % of the window, 24 blocks/s, 62 s left',
  );
  expect(progressLine({ share: 0, blocksPerSecond: 0, secondsLeft: null })).toContain('time left unknown');
  expect(progressLine({ share: 0.999, blocksPerSecond: 1, secondsLeft: 1 })).toContain('99 %');
});
