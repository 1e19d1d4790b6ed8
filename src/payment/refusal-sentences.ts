import type { RefusalSentences } from './refusal.ts';

/** A sentence for each reason that belongs to no scheme: this service's own, and x402's for a payment that cannot be read. */
export const OWN_REFUSALS: RefusalSentences = {
  payment_already_used:
    'This payment is already used, and pays for no other request. Sign a new one for this request; for its own request its buyer gets its answer again.',
  invalid_payload:
    'The payment cannot be read. Send base64 of the JSON payment in PAYMENT-SIGNATURE, or what a line of WWW-Authenticate asks for in Authorization.',
  invalid_x402_version: 'The payment has another version of x402. Send x402Version 2.',
  unsupported_payload_type:
    'The payload holds no authorization. Sign an EIP-3009 TransferWithAuthorization, as the entry of accepts says.',
  unexpected_settle_error:
    'The settlement of this payment failed. Look the payment up by its nonce before you sign another.',
  invalid_challenge:
    'The answered challenge is not of this service, or not for this request. Answer the challenge of this 402.',
  invalid_challenge_nonce:
    'The authorization does not answer the challenge. Sign with the hash of the challenge as the nonce.',
  challenge_expired: 'The answered challenge has expired. Answer the challenge of this 402.',
};
