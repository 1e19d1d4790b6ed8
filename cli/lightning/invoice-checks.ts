import { decodeInvoice, type Invoice } from '../../src/payment/lightning/bolt11.ts';
import { readMacaroon } from '../../src/payment/protocols/l402/l402.ts';
import type { InvoiceOffer } from './invoice-offer.ts';
import { formatSats } from './sats.ts';

/** Names of networks, by an invoice's currency. */
const NETWORKS = { bcrt: 'regtest', bc: 'mainnet', tbs: 'signet', tb: 'testnet' };

/** The buyer's limits. */
interface Limits {
  /** Unix seconds. */
  readonly now: number;
  readonly ceilingMsat: bigint;
}

/** The invoice that may be paid, or the reason against it in words for the buyer. */
export type InvoiceVerdict =
  | { readonly ok: true; readonly invoice: Invoice; readonly network: string }
  | { readonly ok: false; readonly reason: string };

/** The allowed difference between the buyer's clock and the seller's, in seconds. */
const SKEW_SECONDS = 60;
/** The identifier of an L402 macaroon: two bytes of version, the payment hash, a token id. */
const IDENTIFIER_BYTES = 66;

/**
 * Checks an invoice of L402 or MPP before it is paid, because sats cannot be returned. The first failure in this order is returned:
 * 1. The invoice can be read, is signed and has an amount.
 * 2. It is what the offer says beside it: amount, network, payment hash.
 * 3. The token of L402 is for this invoice, where it is a macaroon and so says for which.
 * 4. Neither the invoice nor the offer has expired, and the invoice was not made in the future.
 * 5. It is not above the ceiling.
 * Unlike x402's scheme, these protocols do not bind the invoice to the request, so that cannot be checked.
 */
export function checkInvoiceOffer({ invoice: text, stated, proof }: InvoiceOffer, limits: Limits): InvoiceVerdict {
  const { now, ceilingMsat } = limits;
  const invoice = decodeInvoice(text);
  if (!invoice) return refused('the invoice cannot be read, or has no amount');
  const { amountMsat, createdAt, expirySeconds } = invoice;
  const network = NETWORKS[invoice.currency];
  if (stated.amountMsat !== null && stated.amountMsat !== amountMsat) {
    return refused(
      `the invoice is over ${formatSats(amountMsat)}, but the offer says ${formatSats(stated.amountMsat)}`,
    );
  }
  if (stated.network !== null && stated.network !== network) {
    return refused(`the invoice is on ${network}, but the offer says ${stated.network}`);
  }
  const hash = Buffer.from(invoice.paymentHash).toString('hex');
  if (stated.paymentHash !== null && stated.paymentHash !== hash) {
    return refused('the invoice has another payment hash than the offer says');
  }
  const bought = proof.protocol === 'l402' ? paymentHashIn(proof.token) : null;
  if (bought !== null && bought !== hash) return refused('the L402 token is for another invoice');
  const expiresAt = Math.min(createdAt + expirySeconds, stated.expiresAt ?? Number.POSITIVE_INFINITY);
  if (now >= expiresAt) return refused(`the invoice or the offer expired ${now - expiresAt} s ago`);
  if (createdAt > now + SKEW_SECONDS) return refused('the invoice was made in the future, by this clock');
  if (amountMsat > ceilingMsat) {
    return refused(`${formatSats(amountMsat)} is above the ceiling of ${formatSats(ceilingMsat)} (--max-sats)`);
  }
  return { ok: true, invoice, network };
}

/** The payment hash to which a token commits, in hex. Null for a token that is no macaroon of L402: such a token says nothing. */
function paymentHashIn(token: string): string | null {
  const identifier = readMacaroon(Buffer.from(token, 'base64'))?.identifier;
  if (identifier?.length !== IDENTIFIER_BYTES || identifier.readUInt16BE(0) !== 0) return null;
  return identifier.subarray(2, 34).toString('hex');
}

function refused(reason: string): InvoiceVerdict {
  return { ok: false, reason };
}
