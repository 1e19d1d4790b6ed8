import { LNBTC_REFUSALS } from '../payment/lnbtc/refusal-sentences.ts';

/** The reasons that belong to this service and not to the scheme. */
const OWN_MESSAGES = {
  invalid_request:
    'The body cannot be read. Send { "x402Version": 2, "paymentPayload": { … }, "paymentRequirements": { … } } as JSON.',
  body_too_large: 'The body is too large. Send at most 64 KiB.',
  url_too_long: 'The URL is too long. POST the body to /facilitator/settle.',
  rate_limited:
    'This client has sent too many settle calls in this minute. Wait for Retry-After, and settle the same proof again.',
  daily_cap_reached:
    'The claims of this day are used up, for this client, for payees of today, or for all. Wait for Retry-After, and settle the same proof again.',
  replay_store_unavailable:
    'The store of claims does not answer. Settle the same proof again after Retry-After. If that answer is duplicate_settlement, this call has perhaps claimed it.',
  unexpected_settle_error: 'This is a fault of the service. Nothing was claimed: settle the same proof again.',
};

/** What each reason of the facilitator means, and what mends it. */
export const MESSAGES = { ...LNBTC_REFUSALS, ...OWN_MESSAGES };

/** Every `errorReason` of the facilitator. */
export type FacilitatorReason = keyof typeof MESSAGES;
