import { EXPIRED } from '../../settler.ts';

/** The problem types of the auth scheme `Payment`, and their titles. */
const TITLES = {
  'payment-required': 'Payment required',
  'malformed-credential': 'Malformed credential',
  'invalid-challenge': 'Invalid challenge',
  'verification-failed': 'Verification failed',
  'payment-insufficient': 'Payment insufficient',
  'payment-expired': 'Payment expired',
};

type ProblemType = keyof typeof TITLES;

const BASE = 'https://paymentauth.org/problems/';

/** The problem type of each reason for a refusal. Any other reason means that the payment itself is wrong. */
const TYPES: Readonly<Record<string, ProblemType>> = {
  x402_not_here: 'payment-required',
  invalid_payload: 'malformed-credential',
  unsupported_payload_type: 'malformed-credential',
  invalid_challenge: 'invalid-challenge',
  challenge_expired: 'invalid-challenge',
  payment_already_used: 'invalid-challenge',
  invalid_exact_evm_payload_authorization_value_mismatch: 'payment-insufficient',
  [EXPIRED]: 'payment-expired',
};

const SENTENCES: Readonly<Record<string, string>> = {
  x402_not_here: 'This route takes MPP; the same route under /v1/paid takes x402.',
  challenge_expired: 'The challenge has expired; pay the new one.',
  payment_already_used: 'This payment is used; pay the new challenge for another answer.',
  invalid_challenge: 'The challenge is not of this service, or not for this request; pay the new one.',
};

/** A problem (RFC 9457) of the auth scheme `Payment`. */
interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: 402;
  readonly detail: string;
  /** The reason for a refusal in this service's own words, which the other protocols use too. */
  readonly code: string;
}

/** Describes a 402. `reason` is undefined for a request without a payment. */
export function problemOf(reason: string | undefined, hint: string): Problem {
  const type = reason === undefined ? 'payment-required' : (TYPES[reason] ?? 'verification-failed');
  const why = reason === undefined ? '' : `${SENTENCES[reason] ?? `The payment was refused: ${reason}.`} `;
  return {
    ...{ type: BASE + type, title: TITLES[type], status: 402 },
    ...{ detail: why + hint, code: reason ?? 'payment_required' },
  };
}
