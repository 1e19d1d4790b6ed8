import { createHash } from 'node:crypto';
import { bindHttp } from '../../src/payment/lightning/binding.ts';
import type { Invoice } from '../../src/payment/lightning/bolt11.ts';
import { checkExtra, checkInvoicesPresent, readInvoice, readTerms } from '../../src/payment/lightning/proof.ts';
import { printable } from '../pay/printable.ts';
import { formatSats } from './sats.ts';

/** The request that is repeated with the proof, and the buyer's limits. */
interface Purchase {
  readonly method: string;
  /** The URL as it is sent, without a fragment. */
  readonly url: string;
  /** The URL that the challenge names as sold. */
  readonly resourceUrl: string;
  /** Unix seconds. */
  readonly now: number;
  readonly ceilingMsat: bigint;
}

/** The invoice that may be paid, or the scheme's reason against it, with a hint where the reason alone says little. */
export type OfferVerdict =
  | { readonly ok: true; readonly invoice: Invoice; readonly text: string; readonly network: string }
  | { readonly ok: false; readonly reason: string; readonly hint?: string };

/** The allowed difference between the buyer's clock and the seller's, in seconds. */
const SKEW_SECONDS = 60;
const EMPTY = new Uint8Array();

/**
 * Checks an offer before it is paid, because sats cannot be returned. The first failure in this order is returned:
 * 1. It has terms of this scheme, on a known network.
 * 2. It is paid up front, for exactly our request. The request's hash is computed here and never taken from the seller.
 * 3. The challenge names the URL of that request.
 * 4. The invoice can be read, says exactly that and nothing else, and is signed by `payTo`.
 * 5. It has not expired.
 * 6. It is not above the ceiling.
 */
export function checkLightningOffer(entry: unknown, purchase: Purchase): OfferVerdict {
  const { method, url, resourceUrl, now, ceilingMsat } = purchase;
  const binding = bindHttp({ method, url, body: EMPTY });
  if (!binding) return refused('invalid_exact_lnbtc_request_binding', 'this request cannot be bound into an invoice');
  const terms = readTerms(entry, Number.MAX_SAFE_INTEGER);
  if (typeof terms === 'string') return refused(terms);

  const requestHash = Buffer.from(binding.hash).toString('hex');
  const { extra } = entry as { extra?: unknown };
  const expected = {
    paymentFlow: 'upfront',
    requestHash,
    requestBindingProfile: 'http:1',
    requestBindingParams: { headers: [] },
  };
  const request = checkExtra(extra, expected);
  if (typeof request === 'string') return refused(request, HINTS[request]);
  if (resourceUrl !== url) {
    return refused('invalid_exact_lnbtc_request_mismatch', `the offer is for ${printable(resourceUrl)}`);
  }

  const absent = checkInvoicesPresent(extra, extra);
  if (absent) return refused(absent);
  const { invoice: text } = extra as { invoice: string };
  const invoice = readInvoice(text, { ...terms, requestHash, latestCreation: now + SKEW_SECONDS });
  if (typeof invoice === 'string') return refused(invoice);
  if (now >= invoice.createdAt + invoice.expirySeconds) return refused('invalid_exact_lnbtc_invoice_expired');
  if (invoice.amountMsat > ceilingMsat) {
    const hint = `${formatSats(invoice.amountMsat)} is above the ceiling of ${formatSats(ceilingMsat)} (--max-sats)`;
    return refused('above_the_ceiling', hint);
  }
  return { ok: true, invoice, text, network: terms.network.id };
}

const HINTS: Record<string, string> = {
  invalid_exact_lnbtc_request_mismatch:
    'the invoice is for another request: is the seller known under another origin, or does it bind headers?',
};

function refused(reason: string, hint?: string): OfferVerdict {
  return { ok: false, reason, ...(hint !== undefined && { hint }) };
}

/** Checks a payer's preimage. Null when its hash is the payment hash, else the scheme's reason. */
export function checkPaidPreimage(preimage: unknown, paymentHash: Uint8Array): string | null {
  if (preimage === undefined || preimage === null || preimage === '')
    return 'invalid_exact_lnbtc_payer_preimage_required';
  if (typeof preimage !== 'string' || !/^[0-9a-f]{64}$/.test(preimage)) {
    return 'invalid_exact_lnbtc_payer_preimage_malformed';
  }
  const hash = createHash('sha256').update(preimage, 'hex').digest();
  return hash.equals(paymentHash) ? null : 'invalid_exact_lnbtc_payer_preimage_hash_mismatch';
}
