/** Bytes of a `0x` hex string; the caller has checked its form. */
export function hexToBytes(hex: string): Buffer {
  return Buffer.from(hex.slice(2), 'hex');
}

/** Lower-case `0x` hex of bytes. */
export function bytesToHex(bytes: Uint8Array): `0x${string}` {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`;
}
