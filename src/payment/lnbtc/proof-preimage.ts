import { hash } from 'node:crypto';
import type { LnbtcReason } from './proof-reasons.ts';

const LOWER_HEX = /^[0-9a-f]*$/;
const HEX_LENGTH = 64;

/** Step 6: the preimage's SHA-256 is the payment hash. Null when it is. The preimage itself is not stored or returned. */
export function checkPreimage(preimage: unknown, paymentHash: Uint8Array): LnbtcReason | null {
  if (preimage === undefined || preimage === null) return 'invalid_exact_lnbtc_preimage_missing';
  if (typeof preimage !== 'string' || !LOWER_HEX.test(preimage)) return 'invalid_exact_lnbtc_preimage_malformed';
  if (preimage.length !== HEX_LENGTH) return 'invalid_exact_lnbtc_preimage_length';
  const opened = hash('sha256', Buffer.from(preimage, 'hex'), 'buffer');
  return opened.equals(paymentHash) ? null : 'invalid_exact_lnbtc_preimage_hash_mismatch';
}
