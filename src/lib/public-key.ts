import secp256k1 from 'secp256k1';

/** Whether these bytes are a compressed secp256k1 public key: 33 of them, and its x lies on the curve. Never throws. */
export function isPublicKey(bytes: Uint8Array): boolean {
  return bytes.length === 33 && secp256k1.publicKeyVerify(bytes);
}
