import { z } from 'zod';

/**
 * A facilitator's reply to one settlement request. No reply proves a payment. After `accepted`, the evidence is read. After `refused`, the payment
 * fails, if it was never sent before.
 */
export type SettleReply =
  | { readonly kind: 'accepted'; readonly transaction: string }
  | { readonly kind: 'pending'; readonly paymentId: string | null }
  | { readonly kind: 'refused'; readonly reason: string }
  /** The Gateway has a transfer with this nonce already. */
  | { readonly kind: 'used' }
  | {
      readonly kind: 'unclear';
      readonly detail: string;
      /** There was no answer, or the answer says nothing about this payment. The connection to the facilitator is at fault, not the payer. */
      readonly isTransport: boolean;
    };

/** There was no readable answer. */
export const UNHEARD: SettleReply = { kind: 'unclear', detail: 'no readable answer', isTransport: true };

/**
 * Error codes with which facilitators refuse a payment during verification, before any transaction: x402's, the EVM scheme's and Circle's. An
 * unlisted code may come after a broadcast.
 */
const BEFORE_BROADCAST = new Set([
  ...['insufficient_funds', 'invalid_payload', 'invalid_network', 'invalid_scheme', 'invalid_x402_version'],
  ...['invalid_payment_requirements', 'unsupported_scheme', 'unsupported_payload_type', 'asset_not_deployed_contract'],
  ...['eip6492_factory_not_allowed', 'unsupported_network', 'unsupported_asset', 'unsupported_domain'],
  ...['address_mismatch', 'amount_mismatch', 'invalid_signature', 'authorization_not_yet_valid'],
  ...['authorization_expired', 'authorization_validity_too_short', 'self_transfer', 'insufficient_balance'],
  'wallet_not_found',
  ...[
    ...['scheme', 'network_mismatch', 'missing_eip712_domain', 'recipient_mismatch', 'signature', 'payload_signature'],
    ...['payload_authorization_valid_before', 'payload_authorization_valid_after', 'payload_authorization_value'],
    ...['payload_authorization_value_mismatch', 'payload_recipient_mismatch', 'token_name_mismatch'],
    ...['token_version_mismatch', 'eip3009_not_supported', 'insufficient_balance', 'failed_to_parse_signature'],
    'transaction_simulation_failed',
  ].map((word) => `invalid_exact_evm_${word}`),
]);

const optional = z.string().nullish().catch(null);

/** Circle omits members without a value. The SDK's own schema refuses that. */
const reply = z.object({
  success: z.boolean(),
  transaction: optional,
  network: optional,
  errorReason: optional,
  extensions: z
    .object({ 'settlement-status': z.object({ paymentId: optional }).nullish().catch(null) })
    .nullish()
    .catch(null),
});

/**
 * Reads an answer to `/settle`. An answer is `unclear` unless it is plainly a success, a pending settlement, a used nonce or a refusal before any
 * broadcast. Unclear are other statuses than 200 to 499, another shape, another network and an unknown error code.
 */
export function readReply(status: number, body: unknown, network: string): SettleReply {
  if (status >= 500) return { kind: 'unclear', detail: `HTTP ${status}`, isTransport: true };
  const parsed = reply.safeParse(body);
  if (!parsed.success)
    return { kind: 'unclear', detail: `HTTP ${status} without a settlement's answer`, isTransport: true };
  const { success, transaction, errorReason, extensions } = parsed.data;
  if (parsed.data.network && parsed.data.network !== network)
    return { kind: 'unclear', detail: 'another network', isTransport: true };
  if (success) return { kind: 'accepted', transaction: transaction ?? '' };
  if (errorReason === 'settlement_pending') {
    return { kind: 'pending', paymentId: extensions?.['settlement-status']?.paymentId ?? null };
  }
  if (errorReason === 'nonce_already_used') return { kind: 'used' };
  if (errorReason && !transaction && BEFORE_BROADCAST.has(errorReason)) return { kind: 'refused', reason: errorReason };
  return { kind: 'unclear', detail: describe(errorReason), isTransport: false };
}

/** The facilitator's error code for our log. It is logged only when it looks like a code, because an answer may repeat what we sent, even a token. */
function describe(reason: string | null | undefined): string {
  return reason && /^[a-z][a-z0-9_]{2,63}$/.test(reason) ? reason : 'a refusal in no known words';
}
