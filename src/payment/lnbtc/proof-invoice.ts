import { own } from '../../lib/own-property.ts';
import { decodeInvoice, type Invoice } from './bolt11.ts';
import type { LnbtcReason } from './proof-reasons.ts';
import type { ProofTerms } from './proof-terms.ts';

/** What an invoice is compared with. */
export interface InvoiceTerms extends ProofTerms {
  /** 64 lower-case hex characters. */
  readonly requestHash: string;
  /** Unix seconds. An invoice created later than this counts as created in the future. */
  readonly latestCreation: number;
}

/** Step 4: both sides have an invoice. The two may differ; the accepted one is checked. Null when both are there. */
export function checkInvoicesPresent(acceptedExtra: unknown, requiredExtra: unknown): LnbtcReason | null {
  const isAbsent = (extra: unknown) => {
    const invoice = own(extra, 'invoice');
    return invoice === undefined || invoice === null || invoice === '';
  };
  return isAbsent(requiredExtra) || isAbsent(acceptedExtra) ? 'invalid_exact_lnbtc_invoice_missing' : null;
}

/** Step 5: the invoice is readable and matches the requirement, in the scheme's order. */
export function readInvoice(text: unknown, terms: InvoiceTerms): Invoice | LnbtcReason {
  const invoice = decodeInvoice(text);
  if (!invoice) return 'invalid_exact_lnbtc_invoice_decode_failed';
  const [requestHash, ...more] = invoice.descriptionHashes;
  if (!requestHash || more.length > 0 || invoice.hasDescription) return 'invalid_exact_lnbtc_invoice_description';
  if (Buffer.compare(requestHash, Buffer.from(terms.requestHash, 'hex')) !== 0)
    return 'invalid_exact_lnbtc_invoice_request_mismatch';
  if (Buffer.compare(invoice.payee, terms.payTo) !== 0) return 'invalid_exact_lnbtc_invoice_payee_mismatch';
  if (invoice.currency !== terms.network.currency) return 'invalid_exact_lnbtc_invoice_currency_mismatch';
  if (invoice.amountMsat.toString() !== terms.amount) return 'invalid_exact_lnbtc_invoice_amount_mismatch';
  if (invoice.expirySeconds !== terms.maxTimeoutSeconds) return 'invalid_exact_lnbtc_invoice_expiry_mismatch';
  if (invoice.createdAt > terms.latestCreation) return 'invalid_exact_lnbtc_invoice_created_in_future';
  return invoice;
}
