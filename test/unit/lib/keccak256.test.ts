import { keccak_256 } from '@noble/hashes/sha3';
import { expect, test } from 'vitest';
import { keccak256 } from '../../../src/lib/secp256k1.ts';

const hexOf = (bytes: Uint8Array) => Buffer.from(bytes).toString('hex');
const bytesOf = (length: number) => Uint8Array.from({ length }, (_, at) => (at * 31 + length) % 256);

test('Keccak-256 as Ethereum has it, not SHA-3: of no bytes, and of a well-known event', () => {
  expect(hexOf(keccak256(new Uint8Array()))).toBe('c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470');
  expect(hexOf(keccak256(Buffer.from('Transfer(address,address,uint256)')))).toBe(
    'ddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef',
  );
});

test('the same as another implementation, around the block size (136 bytes) and the chunk size (16 KiB)', () => {
  for (const edge of [136, 272, 16_384, 32_768, 120_000]) {
    for (const length of [edge - 1, edge, edge + 1]) {
      expect(hexOf(keccak256(bytesOf(length))), String(length)).toBe(hexOf(keccak_256(bytesOf(length))));
    }
  }
});

test('only the given part of a larger buffer is hashed, and a hash does not change when the next is made', () => {
  const whole = Buffer.from(bytesOf(64));
  const first = keccak256(whole.subarray(8, 40));
  const kept = hexOf(first);
  keccak256(whole);
  expect(hexOf(first)).toBe(kept);
  expect(kept).toBe(hexOf(keccak_256(Uint8Array.from(whole.subarray(8, 40)))));
});
