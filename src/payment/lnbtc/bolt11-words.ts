/** Words `start` to `end` (5 bits each) as bytes. The last byte is filled with zero bits, as BOLT11 does before it signs. */
export function packWords(words: readonly number[], start: number, end: number): Uint8Array {
  const bytes = new Uint8Array(Math.ceil(((end - start) * 5) / 8));
  let held = 0;
  let bits = 0;
  let at = 0;
  for (let i = start; i < end; i++) {
    // At most 7 bits wait for their byte, so 12 bits hold them and the next word.
    held = ((held << 5) | (words[i] ?? 0)) & 0xfff;
    bits += 5;
    if (bits >= 8) {
      bits -= 8;
      bytes[at++] = held >> bits;
    }
  }
  if (bits > 0) bytes[at] = held << (8 - bits);
  return bytes;
}

/**
 * Words `start` to `end` as exactly `length` bytes. Null for another number of words, and for padding that is not zero, so that each value has one
 * spelling.
 */
export function exactBytes(words: readonly number[], start: number, end: number, length: number): Uint8Array | null {
  if (end - start !== Math.ceil((length * 8) / 5)) return null;
  const bytes = packWords(words, start, end);
  if (bytes.length === length) return bytes;
  return bytes[length] === 0 ? bytes.slice(0, length) : null;
}

/** Words `start` to `end` as a minimal integer (zero is one zero word). Null for no words, a leading zero word, or more than a safe integer. */
export function minimalInteger(words: readonly number[], start: number, end: number): number | null {
  if (end === start || (words[start] === 0 && end - start > 1)) return null;
  return integer(words, start, end);
}

/** Words `start` to `end` as an integer of any width. Null beyond the safe integers. */
export function integer(words: readonly number[], start: number, end: number): number | null {
  let value = 0;
  // Doubles are exact up to the bound, so the first value beyond it is detected. Shifts would overflow at 32 bits.
  for (let i = start; i < end; i++) {
    value = value * 32 + (words[i] ?? 0);
    if (value > Number.MAX_SAFE_INTEGER) return null;
  }
  return value;
}
