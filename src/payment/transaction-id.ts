import { bytesToHex, hexToBytes } from '../lib/hex.ts';

/**
 * Marks a row in the ledger whose transaction a third party will make. It is noted before an authorization is handed to that party. From then on the
 * party can take the money, even if this process fails.
 */
export const HANDED_OVER = Uint8Array.of(0);

const HASH_BYTES = 32;
const TRANSFER_BYTES = 16;
const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

/** The bytes of a Gateway transfer's id (a UUID); null for any other text. */
export function transferIdBytes(text: string): Uint8Array | null {
  return UUID.test(text) ? hexToBytes(`0x${text.replaceAll('-', '')}`) : null;
}

/** Whether a ledger row's transaction is a Gateway transfer's id. */
export function isTransferId(bytes: Uint8Array | null): bytes is Uint8Array {
  return bytes?.length === TRANSFER_BYTES;
}

/** A ledger row's transaction as buyers see it: a transaction hash or a Gateway transfer's id. Null while there is neither. */
export function transactionText(bytes: Uint8Array | null): string | null {
  if (bytes?.length === HASH_BYTES) return bytesToHex(bytes);
  if (!isTransferId(bytes)) return null;
  return bytesToHex(bytes)
    .slice(2)
    .replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
