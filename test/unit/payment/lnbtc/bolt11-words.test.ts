import { expect, test } from 'vitest';
import { exactBytes, integer, minimalInteger, packWords } from '../../../../src/payment/lightning/bolt11.ts';

const hex = (bytes: Uint8Array | null) => bytes && Buffer.from(bytes).toString('hex');

test('words become as many bytes as their bits fill, the last one filled up with zeros', () => {
  const words = [31, 0, 31, 0, 31, 0, 31, 0, 31];
  expect(hex(packWords(words, 0, 8))).toBe('f83e0f83e0');
  expect(hex(packWords(words, 1, 9))).toBe('07c1f07c1f');
  expect(hex(packWords(words, 2, 4))).toBe('f800');
  expect(hex(packWords(words, 4, 5))).toBe('f8');
  expect(hex(packWords(words, 9, 9))).toBe('');
});

test('bytes are read from exactly as many words as they take, and padding is zero', () => {
  const words = [31, 0, 31, 0, 31, 0, 31, 0];
  expect(hex(exactBytes(words, 0, 8, 5))).toBe('f83e0f83e0');
  expect([exactBytes(words, 0, 8, 4), exactBytes(words, 0, 8, 6), exactBytes(words, 0, 7, 5)]).toEqual(
    Array(3).fill(null),
  );
  expect(hex(exactBytes([0, 31, 28], 1, 3, 1))).toBe('ff');
  expect(exactBytes([0, 31, 29], 1, 3, 1)).toBeNull();
});

test('an integer is read up to the largest safe one, and a minimal one has no zero in front', () => {
  const most = [7, ...Array(10).fill(31)];
  expect([integer(most, 0, 11), minimalInteger(most, 0, 11)]).toEqual(Array(2).fill(Number.MAX_SAFE_INTEGER));
  expect([integer([8, ...Array(10).fill(0)], 0, 11), minimalInteger([8, ...Array(10).fill(0)], 0, 11)]).toEqual([
    null,
    null,
  ]);
  expect([integer([0, 5], 0, 2), minimalInteger([0, 5], 0, 2)]).toEqual([5, null]);
  expect([minimalInteger([0], 0, 1), minimalInteger([3, 5], 1, 2), minimalInteger([5], 1, 1)]).toEqual([0, 5, null]);
});
