import type { RefusalSentences } from './refusal.ts';

/** A sentence for each reason that belongs to no scheme: this service's own, and x402's for a payment that cannot be read. */
export const OWN_REFUSALS: RefusalSentences = {
  payment_already_used:
    'This payment is already used: it was made for another request, or its answer is not given to this client again. If you paid for this very request, present the same payment again from the address that paid, or with its payment identifier. For another request, sign a new one.',
  invalid_payload:
    'The payment cannot be read. Send base64 of the JSON payment in PAYMENT-SIGNATURE, or in Authorization the credential that a line of WWW-Authenticate asks for; with a call of a tool, the JSON payment in _meta["x402/payment"].',
  invalid_x402_version: 'The payment has another version of x402. Send x402Version 2.',
  unsupported_payload_type:
    'The payload holds no authorization. Sign an EIP-3009 TransferWithAuthorization for the entry of accepts, or over MPP for the challenge.',
  unexpected_settle_error:
    'The settlement of this payment failed. Look the payment up by its nonce before you sign another.',
  invalid_challenge:
    'The answered challenge is not of this service, or not for this request. Answer the challenge of this 402.',
  invalid_challenge_nonce:
    'The authorization does not answer the challenge: its nonce must be the Keccak-256 hash of the challenge’s id and realm.',
  challenge_expired: 'The answered challenge has expired. Answer the challenge of this 402.',
};
