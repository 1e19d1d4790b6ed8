import { z } from 'zod';

/**
 * What a facilitator said to one settlement. None of it is believed: `accepted` is a reason to look, and `refused` one to stop waiting
 * where nothing of ours can have been sent before.
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
      /** There was no answer at all, or one that says nothing of this payment: the way to the facilitator is at fault, not a payer. */
      readonly isTransport: boolean;
    };

/** No answer that could be read. */
export const UNHEARD: SettleReply = { kind: 'unclear', detail: 'no readable answer', isTransport: true };

/**
 * The words with which facilitators refuse a payment while they verify it, so before a transaction: x402's, the EVM scheme's, Circle's.
 * A word that is not here may have been said after a broadcast.
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

/** Circle leaves out what it has nothing to say of, which the SDK's own schema does not take. */
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
 * Reads an answer to `/settle`. Anything that is not plainly a yes or a refusal before any broadcast is `unclear`: other statuses than
 * 200 to 499, another shape, another network, a word that nobody knows.
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

/** A stranger's word for our log: only if it looks like one, because an answer may repeat what we sent, a token even. */
function describe(reason: string | null | undefined): string {
  return reason && /^[a-z][a-z0-9_]{2,63}$/.test(reason) ? reason : 'a refusal in no known words';
}
