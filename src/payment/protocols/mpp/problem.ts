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

/** A payment by x402 is not read here, so its reason comes without a sentence. */
const X402_NOT_HERE = 'This route takes MPP; the same route under /v1/paid takes x402.';

/** A problem (RFC 9457) of the auth scheme `Payment`. */
interface Problem {
  readonly type: string;
  readonly title: string;
  readonly status: 402;
  readonly detail: string;
  /** The reason for a refusal in this service's own words, which the other protocols use too. */
  readonly code: string;
}

/** Describes a 402. `reason` is undefined for a request without a payment. `hint` says why a payment was refused, the price, and what to do next. */
export function problemOf(reason: string | undefined, hint: string): Problem {
  const type = reason === undefined ? 'payment-required' : (TYPES[reason] ?? 'verification-failed');
  return {
    ...{ type: BASE + type, title: TITLES[type], status: 402 },
    ...{ detail: reason === 'x402_not_here' ? `${X402_NOT_HERE} ${hint}` : hint, code: reason ?? 'payment_required' },
  };
}
