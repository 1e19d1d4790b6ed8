import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';
import type { Binding } from '../../lnbtc/binding.ts';

const ALGORITHM = 'aes-256-gcm';
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
/** Bytes that sealing adds to a reply. */
export const SEAL_BYTES = NONCE_BYTES + TAG_BYTES;

/**
 * Derives the key from the request itself, of which the ledger keeps only the hash. So a reader of the database file cannot read an answer without
 * the request. No key needs to be stored, and every instance can open what another has sealed.
 */
function keyOf(binding: Binding, paymentHash: Uint8Array): Uint8Array {
  return new Uint8Array(hkdfSync('sha256', binding.canonical, paymentHash, 'percall kept reply', 32));
}

/** Seals a reply for the request and the invoice that it belongs to. */
export function sealReply(body: Uint8Array, binding: Binding, paymentHash: Uint8Array): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv(ALGORITHM, keyOf(binding, paymentHash), nonce);
  return Buffer.concat([nonce, cipher.update(body), cipher.final(), cipher.getAuthTag()]);
}

/** Opens a sealed reply. Null when the bytes are damaged or belong to another request or invoice. */
export function openReply(sealed: Uint8Array, binding: Binding, paymentHash: Uint8Array): Buffer | null {
  if (sealed.length < SEAL_BYTES) return null;
  const end = sealed.length - TAG_BYTES;
  const decipher = createDecipheriv(ALGORITHM, keyOf(binding, paymentHash), sealed.subarray(0, NONCE_BYTES));
  decipher.setAuthTag(sealed.subarray(end));
  try {
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES, end)), decipher.final()]);
  } catch {
    return null;
  }
}
