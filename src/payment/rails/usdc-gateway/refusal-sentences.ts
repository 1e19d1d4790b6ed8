import type { RefusalSentences } from '../../refusal.ts';

/** A sentence for each reason of the Gateway's own that this rail gives. The Gateway may give others. */
export const GATEWAY_REFUSALS: RefusalSentences = {
  insufficient_balance:
    'The payer’s deposit in the Gateway is too small for this call and its other open payments. Deposit more, or pay by another entry of accepts.',
  authorization_validity_too_short:
    'The authorization ends too soon for the Gateway. Sign it for the whole maxTimeoutSeconds of the entry.',
  self_transfer: 'The payer is the seller. Pay from another wallet.',
};
