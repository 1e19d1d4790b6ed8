import type { LnbtcReason } from './proof-reasons.ts';

/** What differs between the two sides of a proof, and what mends it. */
const differs = (member: string): string =>
  `The ${member} that the buyer accepted is not the required one. Both must be the same: send back the entry of accepts unchanged.`;

const BINDING =
  'extra needs requestHash (64 lower-case hex characters), requestBindingProfile (http:1 or mcp:1) and the profile’s requestBindingParams, on both sides.';
const FRESH = 'Pay the invoice of a new offer.';

/** A sentence for each reason of this scheme: which member is wrong, and what mends it. It is true for the seller who settles, and for the buyer. */
export const LNBTC_REFUSALS: Readonly<Record<LnbtcReason | SellersReason, string>> = {
  unsupported_scheme:
    'The scheme is not supported, or the accepted scheme is another one. Both sides need scheme exact.',
  network_mismatch: differs('network'),
  invalid_exact_lnbtc_amount_mismatch: differs('amount'),
  invalid_exact_lnbtc_asset: 'The asset is another one. Both sides need asset BTC.',
  invalid_exact_lnbtc_pay_to_mismatch: differs('payTo'),
  invalid_exact_lnbtc_max_timeout_mismatch: differs('maxTimeoutSeconds'),
  unsupported_network: 'The network is not supported. GET /facilitator/supported lists those that are.',
  invalid_exact_lnbtc_amount:
    'The amount is not valid. Write it as a decimal string of millisatoshis, without a leading 0.',
  invalid_exact_lnbtc_max_timeout:
    'maxTimeoutSeconds is not valid. It is a whole number of seconds, the invoice’s expiry, and here at most 3600.',
  invalid_exact_lnbtc_pay_to_malformed:
    'payTo is no node’s key. Write the 33 bytes of a compressed secp256k1 key as 66 lower-case hex characters.',
  invalid_exact_lnbtc_asset_transfer_method:
    'extra.assetTransferMethod is another method. Leave it out, or write bolt11, on both sides.',
  invalid_exact_lnbtc_payment_flow: 'extra.paymentFlow is another flow. Write upfront, on both sides.',
  invalid_exact_lnbtc_request_binding: `The binding of the request cannot be read. ${BINDING}`,
  invalid_exact_lnbtc_request_mismatch:
    'The payment is for another request: requestHash, profile or parameters differ. Present it with the request that it was paid for, byte for byte.',
  invalid_exact_lnbtc_extra_mismatch:
    'A member of extra is not what was required. Send back the entry of accepts unchanged.',
  invalid_exact_lnbtc_invoice_missing: 'The invoice is missing. extra.invoice must stand on both sides.',
  invalid_exact_lnbtc_invoice_decode_failed:
    'The invoice in extra.invoice cannot be read. It must be a signed BOLT11 invoice.',
  invalid_exact_lnbtc_invoice_description:
    'The invoice is bound to no request. It needs exactly one description hash, and no description.',
  invalid_exact_lnbtc_invoice_request_mismatch:
    'The invoice is for another request. Present it with the request that it was paid for, byte for byte.',
  invalid_exact_lnbtc_invoice_payee_mismatch: `The invoice is signed by another node than payTo. ${FRESH}`,
  invalid_exact_lnbtc_invoice_currency_mismatch: `The invoice is of another network. ${FRESH}`,
  invalid_exact_lnbtc_invoice_amount_mismatch: `The invoice has another amount than the required one. ${FRESH}`,
  invalid_exact_lnbtc_invoice_expiry_mismatch: `The invoice’s expiry is not maxTimeoutSeconds. ${FRESH}`,
  invalid_exact_lnbtc_invoice_created_in_future: 'The invoice was made in the future. Set the clocks, and try again.',
  invalid_exact_lnbtc_preimage_missing: 'The preimage is missing. Put it into payload.preimage of the payment.',
  invalid_exact_lnbtc_preimage_malformed:
    'The preimage is not lower-case hex. Write its 32 bytes as 64 lower-case hex characters.',
  invalid_exact_lnbtc_preimage_length:
    'The preimage has another length. Write its 32 bytes as 64 lower-case hex characters.',
  invalid_exact_lnbtc_preimage_hash_mismatch:
    'The preimage is of another payment: its SHA-256 is not the invoice’s payment hash. Pay the invoice, and send the preimage that the payment returned.',
  invalid_exact_lnbtc_invoice_expired: `The invoice has expired. ${FRESH}`,
  duplicate_settlement:
    'This proof was used before. It buys the request that it was first presented for, and nothing else: for that request, present it again byte for byte. For another one, pay a new invoice.',
  exact_lnbtc_payment_not_paid:
    'No payment of this invoice is known here. If you have paid it, do not pay again: present the proof again later, or ask the seller. If not, pay the invoice of this offer.',
};

/** The scheme's reasons on the seller's side, which no facilitator gives. */
type SellersReason = 'exact_lnbtc_payment_not_paid';
