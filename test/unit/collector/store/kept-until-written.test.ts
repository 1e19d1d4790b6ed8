import { expect, test } from 'vitest';
import { keptUntilWritten } from '../../../../src/collector/store/facts.ts';

test('reads once between two writes, and again after one, also when there was nothing to read', () => {
  let [version, reads] = [0, 0];
  const kept = keptUntilWritten(
    () => version,
    () => {
      reads += 1;
      return version === 0 ? null : { version };
    },
  );
  expect([kept(), kept(), reads]).toEqual([null, null, 1]);
  version = 1;
  expect(kept()).toEqual({ version: 1 });
  expect(kept()).toBe(kept());
  expect(reads).toBe(2);
});
