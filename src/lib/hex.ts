/** The caller has checked the form. */
export function hexToBytes(hex: string): Buffer {
  return Buffer.from(hex.slice(2), 'hex');
}

/** In lower case. */
export function bytesToHex(bytes: Uint8Array): `0x${string}` {
  return `0x${Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString('hex')}`;
}

// RLP, the encoding of Ethereum transactions (yellow paper, appendix B).

export function rlpBytes(bytes: Uint8Array): Buffer {
  const [first = 0] = bytes;
  return bytes.length === 1 && first < 0x80 ? Buffer.from(bytes) : Buffer.concat([prefix(0x80, bytes.length), bytes]);
}

/** Not negative, in as few bytes as it needs: none for 0. */
export function rlpInteger(value: bigint | number): Buffer {
  return rlpBytes(bytesOf(BigInt(value)));
}

/** Of items that are encoded already. */
export function rlpList(items: readonly Uint8Array[]): Buffer {
  const length = items.reduce((sum, item) => sum + item.length, 0);
  return Buffer.concat([prefix(0xc0, length), ...items]);
}

function prefix(base: number, length: number): Buffer {
  if (length < 56) return Buffer.from([base + length]);
  const size = bytesOf(BigInt(length));
  return Buffer.from([base + 55 + size.length, ...size]);
}

function bytesOf(value: bigint): Buffer {
  if (value === 0n) return Buffer.alloc(0);
  const digits = value.toString(16);
  return Buffer.from(digits.length % 2 === 0 ? digits : `0${digits}`, 'hex');
}
