import type { Invoice } from '../../lnbtc/bolt11.ts';
import { SKEW_SECONDS } from '../../lnbtc/terms.ts';

/** The terms of the invoice that the node was asked for. */
interface Ordered {
  readonly currency: Invoice['currency'];
  readonly amountMsat: bigint;
  /** 32 bytes. */
  readonly requestHash: Uint8Array;
  readonly expirySeconds: number;
  /** 66 hex characters. */
  readonly payTo: string;
}

/**
 * Why an invoice must not be offered, or null. These are the scheme's checks before a challenge is sent. A value equal to a bound is valid. `now` is
 * Unix seconds.
 */
export function issuedFault(invoice: Invoice, ordered: Ordered, now: number): string | null {
  const [hash, ...others] = invoice.descriptionHashes;
  if (invoice.currency !== ordered.currency) return 'it is of another network';
  if (invoice.amountMsat !== ordered.amountMsat) return 'its amount is another';
  if (invoice.hasDescription) return 'it has an inline description';
  if (hash === undefined || others.length > 0) return 'it does not have exactly one description hash';
  if (Buffer.compare(hash, ordered.requestHash) !== 0) return 'its description hash is another';
  if (Buffer.from(invoice.payee).toString('hex') !== ordered.payTo) return 'it is signed by another key';
  if (invoice.expirySeconds !== ordered.expirySeconds) return 'its expiry is another';
  if (invoice.createdAt > now + SKEW_SECONDS) return 'it was created in the future';
  if (invoice.createdAt + invoice.expirySeconds < now) return 'it has expired';
  return null;
}
