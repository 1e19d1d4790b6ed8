/**
 * Every `errorReason` of a facilitator of this scheme, in the order of the checks that can first return it. The codes are the scheme's own, because
 * clients match on them. The claim (step 8) returns the last one, `checkProof` all others.
 */
export const LNBTC_REASONS = [
  'unsupported_scheme',
  'network_mismatch',
  'invalid_exact_lnbtc_amount_mismatch',
  'invalid_exact_lnbtc_asset',
  'invalid_exact_lnbtc_pay_to_mismatch',
  'invalid_exact_lnbtc_max_timeout_mismatch',
  'unsupported_network',
  'invalid_exact_lnbtc_amount',
  'invalid_exact_lnbtc_max_timeout',
  'invalid_exact_lnbtc_pay_to_malformed',
  'invalid_exact_lnbtc_asset_transfer_method',
  'invalid_exact_lnbtc_payment_flow',
  'invalid_exact_lnbtc_request_binding',
  'invalid_exact_lnbtc_request_mismatch',
  'invalid_exact_lnbtc_extra_mismatch',
  'invalid_exact_lnbtc_invoice_missing',
  'invalid_exact_lnbtc_invoice_decode_failed',
  'invalid_exact_lnbtc_invoice_description',
  'invalid_exact_lnbtc_invoice_request_mismatch',
  'invalid_exact_lnbtc_invoice_payee_mismatch',
  'invalid_exact_lnbtc_invoice_currency_mismatch',
  'invalid_exact_lnbtc_invoice_amount_mismatch',
  'invalid_exact_lnbtc_invoice_expiry_mismatch',
  'invalid_exact_lnbtc_invoice_created_in_future',
  'invalid_exact_lnbtc_preimage_missing',
  'invalid_exact_lnbtc_preimage_malformed',
  'invalid_exact_lnbtc_preimage_length',
  'invalid_exact_lnbtc_preimage_hash_mismatch',
  'invalid_exact_lnbtc_invoice_expired',
  'duplicate_settlement',
] as const;

export type LnbtcReason = (typeof LNBTC_REASONS)[number];
