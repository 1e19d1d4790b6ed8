import { createKeccak } from 'hash-wasm';
import secp256k1 from 'secp256k1';
import { bytesToHex } from './hex.ts';

// Hashes, signatures and addresses of Ethereum and Lightning, in WebAssembly and native code.

/** Half of the order: with a larger s a signature is the malleated twin of a valid one (EIP-2, SEC 2). */
const HALF_ORDER = Buffer.from('7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0', 'hex');

const hasher = await createKeccak(256);

/** In WebAssembly: JavaScript blocks the event loop for 8 ms for a transaction of 120 KB (0.5 ms here). */
export function keccak256(bytes: Uint8Array): Uint8Array {
  return hasher.init().update(bytes).digest('binary');
}

/**
 * Who signed a 32-byte digest by `r ‖ s ‖ v`; null for v outside 27/28, a high s or an impossible point: what
 * FiatToken's ECRecover refuses. JavaScript blocks the event loop for milliseconds (0.1 ms here).
 */
export function recoverAddress(digest: Uint8Array, signature: Uint8Array): Uint8Array | null {
  if (signature.length !== 65) return null;
  const recovery = (signature[64] ?? 0) - 27;
  if (recovery !== 0 && recovery !== 1) return null;
  if (HALF_ORDER.compare(signature, 32, 64) < 0) return null;
  try {
    const key = secp256k1.ecdsaRecover(signature.subarray(0, 64), recovery, digest, false);
    return keccak256(key.subarray(1)).subarray(12);
  } catch {
    return null;
  }
}

/** Compressed; of a 32-byte digest, `r ‖ s` and recovery id 0 to 3. A high s is accepted. */
export function recoverPublicKey(digest: Uint8Array, signature: Uint8Array, recovery: number): Uint8Array | null {
  try {
    return secp256k1.ecdsaRecover(signature, recovery, digest, true);
  } catch {
    return null;
  }
}

/** Of a 32-byte digest and 64 bytes `r ‖ s`. False for a high s, and for bytes that are neither. */
export function verifyCompact(digest: Uint8Array, signature: Uint8Array, publicKey: Uint8Array): boolean {
  try {
    // The library itself refuses a high s.
    return secp256k1.ecdsaVerify(signature, digest, publicKey);
  } catch {
    return false;
  }
}

/** Of a 32-byte digest; `recovery` is 0 or 1 and s is low. */
export function signDigest(digest: Uint8Array, privateKey: Uint8Array): { signature: Uint8Array; recovery: number } {
  const { signature, recid } = secp256k1.ecdsaSign(digest, privateKey);
  return { signature, recovery: recid };
}

/** As contracts and `recoverAddress` take it: `r ‖ s ‖ v`, v 27 or 28, s low. */
export function signRecoverable(digest: Uint8Array, privateKey: Uint8Array): Buffer {
  const { signature, recovery } = signDigest(digest, privateKey);
  return Buffer.concat([signature, Buffer.from([27 + recovery])]);
}

/** In lower case. Throws for a key outside the curve's order. */
export function addressOf(privateKey: Uint8Array): `0x${string}` {
  const key = secp256k1.publicKeyCreate(privateKey, false);
  return bytesToHex(keccak256(key.subarray(1)).subarray(12));
}

/** All letters in one case, or of EIP-55's checksum: a wrong one shows a mistyped digit. */
export function hasFittingCase(address: string): boolean {
  const digits = address.slice(2);
  const lower = digits.toLowerCase();
  if (digits === lower || digits === digits.toUpperCase()) return true;
  const hash = bytesToHex(keccak256(Buffer.from(lower, 'ascii'))).slice(2);
  const isUpper = (at: number) => Number.parseInt(hash[at] ?? '0', 16) >= 8;
  return [...lower].every((digit, at) => digits[at] === (isUpper(at) ? digit.toUpperCase() : digit));
}

/** Compressed: 33 bytes, with x on the curve. Never throws. */
export function isPublicKey(bytes: Uint8Array): boolean {
  return bytes.length === 33 && secp256k1.publicKeyVerify(bytes);
}
