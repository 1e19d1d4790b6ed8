import { bytesToHex } from './hex.ts';
import { keccak256 } from './secp256k1.ts';

/**
 * Whether the letter case of an address (0x and 40 hex digits) may stand: no checksum, that is all letters in one case, or EIP-55's. A wrong checksum
 * shows a mistyped digit (https://eips.ethereum.org/EIPS/eip-55).
 */
export function hasFittingCase(address: string): boolean {
  const digits = address.slice(2);
  const lower = digits.toLowerCase();
  if (digits === lower || digits === digits.toUpperCase()) return true;
  const hash = bytesToHex(keccak256(Buffer.from(lower, 'ascii'))).slice(2);
  const isUpper = (at: number) => Number.parseInt(hash[at] ?? '0', 16) >= 8;
  return [...lower].every((digit, at) => digits[at] === (isUpper(at) ? digit.toUpperCase() : digit));
}
