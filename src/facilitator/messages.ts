import { LNBTC_REFUSALS } from '../payment/lightning/proof.ts';
import { KNOWN_DAYS, KNOWN_WINDOW_DAYS, type ReachedCap } from '../store/ports/proofs.ts';

/** The reasons that belong to this service and not to the scheme. */
const OWN_MESSAGES = {
  invalid_request:
    'The body cannot be read. Send { "x402Version": 2, "paymentPayload": { … }, "paymentRequirements": { … } } as JSON.',
  body_too_large: 'The body is too large. Send at most 64 KiB.',
  url_too_long: 'The URL is too long. POST the body to /facilitator/settle.',
  rate_limited:
    'This client has sent too many settle calls in this minute. Wait for Retry-After, and settle the same proof again.',
  replay_store_unavailable:
    'The store of claims does not answer. Settle the same proof again after Retry-After. If that answer is duplicate_settlement, this call has perhaps claimed it.',
  unexpected_settle_error: 'This is a fault of the service. Nothing was claimed: settle the same proof again.',
};

/** What makes a payee known, in words. */
export const WHAT_IS_KNOWN = `claims on ${KNOWN_DAYS} of the ${KNOWN_WINDOW_DAYS} days before, by two clients`;

/** Which part of the day `daily_cap_reached` means. */
const USED_UP: Record<ReachedCap, string> = {
  daily_cap: 'The claims of this day are used up, for all payees.',
  client_cap: 'This client has used up its tenth of this day. Other clients may settle.',
  payee_cap: 'This payee has used up its twentieth of this day.',
  known_cap:
    "This payee has used up its equal part of the known payees' half of this day, and the other half is used up too.",
  open_cap: `The half of this day that is open to every payee is used up. The other half is for known payees only, with ${WHAT_IS_KNOWN}.`,
};

/** The message of a call that found a part of the day used up: which, and what to do. */
export function usedUp(cap: ReachedCap): string {
  return `${USED_UP[cap]} Nothing was claimed: wait for Retry-After, and settle the same proof again.`;
}

/**
 * What each reason of the facilitator means, and what mends it. `daily_cap_reached` has its words from `usedUp`.
 * The reader is a seller. A buyer reads other words about a spent proof at our own routes.
 */
export const MESSAGES = {
  ...LNBTC_REFUSALS,
  ...OWN_MESSAGES,
  duplicate_settlement:
    'This proof was claimed before. If you settled it yourself and have not served it, serve; otherwise refuse.',
};

/** Every `errorReason` that has one message. */
export type FacilitatorReason = keyof typeof MESSAGES;
