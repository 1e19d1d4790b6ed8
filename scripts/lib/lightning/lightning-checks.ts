import { createHash } from 'node:crypto';
import { bindHttp } from '../../../src/payment/lnbtc/binding.ts';
import type { Invoice } from '../../../src/payment/lnbtc/bolt11.ts';
import { checkExtra } from '../../../src/payment/lnbtc/proof-extra.ts';
import { checkInvoicesPresent, readInvoice } from '../../../src/payment/lnbtc/proof-invoice.ts';
import { readTerms } from '../../../src/payment/lnbtc/proof-terms.ts';
import { printable } from '../pay/printable.ts';
import { formatSats } from './sats.ts';

/** The request that will be repeated with the proof, and what the buyer allows. */
interface Purchase {
  readonly method: string;
  /** As it goes over the wire: without a fragment. */
  readonly url: string;
  /** What the challenge says that it sells. */
  readonly resourceUrl: string;
  /** Unix seconds. */
  readonly now: number;
  readonly ceilingMsat: bigint;
}

/** The invoice that may be paid, or the scheme's reason not to, with a word to the buyer where the reason alone says little. */
export type OfferVerdict =
  | { readonly ok: true; readonly invoice: Invoice; readonly text: string; readonly network: string }
  | { readonly ok: false; readonly reason: string; readonly hint?: string };

/** A buyer's clock and a seller's may differ by this much. */
const SKEW_SECONDS = 60;
const EMPTY = new Uint8Array();

/**
 * Judges an offer before anything is paid, because sats do not come back. In this order, the first failure wins:
 * 1. terms of this scheme, on a network that it knows; 2. paid up front for exactly our request, whose hash is made here from what we
 * send and never taken from the seller; 3. the challenge names the very URL of that request; 4. a readable invoice that says exactly that
 * and nothing else, signed by `payTo`; 5. not expired; 6. not above the ceiling.
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

/** Judges what a payer calls the preimage; null when it opens the payment hash, else the scheme's reason. */
export function checkPaidPreimage(preimage: unknown, paymentHash: Uint8Array): string | null {
  if (preimage === undefined || preimage === null || preimage === '')
    return 'invalid_exact_lnbtc_payer_preimage_required';
  if (typeof preimage !== 'string' || !/^[0-9a-f]{64}$/.test(preimage)) {
    return 'invalid_exact_lnbtc_payer_preimage_malformed';
  }
  const hash = createHash('sha256').update(preimage, 'hex').digest();
  return hash.equals(paymentHash) ? null : 'invalid_exact_lnbtc_payer_preimage_hash_mismatch';
}
