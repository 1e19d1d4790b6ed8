import { bytesToHex, hexToBytes } from '../lib/hex.ts';

/**
 * Stands in the ledger for a transaction that somebody else will make: noted before an authorization leaves our hands, because whoever
 * holds it may take the money from then on, whatever becomes of us.
 */
export const HANDED_OVER = Uint8Array.of(0);

const HASH_BYTES = 32;
const TRANSFER_BYTES = 16;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The bytes of a Gateway transfer's id (a UUID), or null for any other text. */
export function transferIdBytes(text: string): Uint8Array | null {
  return UUID.test(text) ? hexToBytes(`0x${text.replaceAll('-', '')}`) : null;
}

/** Whether a ledger row's transaction is a Gateway transfer's id. */
export function isTransferId(bytes: Uint8Array | null): bytes is Uint8Array {
  return bytes?.length === TRANSFER_BYTES;
}

/** A ledger row's transaction as buyers see it: a transaction hash, a Gateway transfer's id, or null while there is neither. */
export function transactionText(bytes: Uint8Array | null): string | null {
  if (bytes?.length === HASH_BYTES) return bytesToHex(bytes);
  if (!isTransferId(bytes)) return null;
  return bytesToHex(bytes)
    .slice(2)
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
