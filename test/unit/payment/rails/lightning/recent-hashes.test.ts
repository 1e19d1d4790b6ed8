import { expect, test } from 'vitest';
import { createRecentHashes } from '../../../../../src/payment/lightning/issuer.ts';

test('a hash is new once, until as many others as are remembered have come', () => {
  const hashes = createRecentHashes(2);
  const [a, b, c] = [1, 2, 3].map((byte) => Buffer.alloc(32, byte)) as [Buffer, Buffer, Buffer];
  expect([hashes.add(a), hashes.add(a), hashes.add(b), hashes.add(a)]).toEqual([true, false, true, false]);
  expect([hashes.add(c), hashes.add(c), hashes.add(b)]).toEqual([true, false, false]);
  expect(hashes.add(a)).toBe(true);
});
