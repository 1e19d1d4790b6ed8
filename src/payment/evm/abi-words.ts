// Encodes Solidity's ABI as hex text without `0x`. Every value is a sequence of words of 32 bytes.

/** A number, an address or at most 32 bytes, as one word padded with zeros on the left. */
export function word(value: bigint | Uint8Array): string {
  return (typeof value === 'bigint' ? value.toString(16) : hexOf(value)).padStart(64, '0');
}

/** Bytes of any length: their number, then the bytes, padded with zeros on the right. */
export function bytesWords(bytes: Uint8Array): string {
  return word(BigInt(bytes.length)) + hexOf(bytes).padEnd(64 * Math.ceil(bytes.length / 32), '0');
}

function hexOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex');
}

/** An address or 32 bytes as a topic of a log. */
export const topicOf = (bytes: Uint8Array): `0x${string}` => `0x${word(bytes)}`;
