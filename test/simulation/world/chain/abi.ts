import type { Hex } from './keys.ts';

// Solidity's ABI, as far as the contracts of this chain need it: words of 32 bytes.

export const word = (value: bigint | number): string => BigInt(value).toString(16).padStart(64, '0');
export const addressWord = (address: string): string => address.slice(2).toLowerCase().padStart(64, '0');
export const topicOf = (address: string): Hex => `0x${addressWord(address)}`;
export const bytesWords = (hex: string): string => {
  const digits = hex.startsWith('0x') ? hex.slice(2) : hex;
  return word(digits.length / 2) + digits.padEnd(64 * Math.ceil(digits.length / 64), '0');
};

/** Reads words out of hex digits without `0x`; throws past the end, as a contract reverts there. */
export function readerOf(digits: string) {
  const slice = (at: number, bytes: number): string => {
    const text = digits.slice(2 * at, 2 * (at + bytes));
    if (text.length !== 2 * bytes) throw new RangeError('calldata is too short');
    return text;
  };
  const number = (at: number): bigint => BigInt(`0x${slice(at, 32)}`);
  const short = (at: number): number => {
    const value = number(at);
    if (value > 0xffffffn) throw new RangeError('a length that cannot be');
    return Number(value);
  };
  return {
    number,
    short,
    address: (at: number): Hex => `0x${slice(at + 12, 20)}`,
    hash: (at: number): Hex => `0x${slice(at, 32)}`,
    /** Bytes whose offset from `base` stands at `at`. */
    bytes: (at: number, base = 0): Hex => {
      const from = base + short(at);
      return `0x${slice(from + 32, short(from))}`;
    },
  };
}
