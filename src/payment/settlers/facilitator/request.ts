import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { bytesToHex } from '../../../lib/hex.ts';
import type { Authorization } from '../../authorization.ts';

/** What every request to a facilitator says besides the authorization itself. */
export interface RequestTerms {
  readonly network: `eip155:${number}`;
  readonly usdc: `0x${string}`;
  /** Which domain the payer signed under. */
  readonly extra: Readonly<Record<string, unknown>>;
  readonly publicOrigin: string;
}

/** A settlement as x402 words it. */
export interface SettleRequest {
  readonly paymentPayload: PaymentPayload;
  readonly paymentRequirements: PaymentRequirements;
}

/** As long as buyers were told. */
const MAX_TIMEOUT_SECONDS = 604_900;
/**
 * For how long an authorization may be good that others are given, seconds: what clients sign for, and ten minutes in which their clocks may differ
 * from ours. Until it runs out a settlement without evidence is unknown.
 */
export const MOST_VALIDITY_SECONDS = MAX_TIMEOUT_SECONDS + 600;

/**
 * The request that settles an authorization, made of nothing else: the same after a restart as before it, and silent about what was
 * bought. The resource is our price list, because Circle wants one.
 */
export function settleRequest(authorization: Authorization, terms: RequestTerms): SettleRequest {
  const { from, to, value, validAfter, validBefore, nonce, signature } = authorization;
  const paymentRequirements: PaymentRequirements = {
    scheme: 'exact',
    network: terms.network,
    asset: terms.usdc,
    amount: value.toString(),
    payTo: bytesToHex(to),
    maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
    extra: { ...terms.extra },
  };
  const payload = {
    signature: bytesToHex(signature),
    authorization: {
      from: bytesToHex(from),
      to: bytesToHex(to),
      value: value.toString(),
      validAfter: validAfter.toString(),
      validBefore: validBefore.toString(),
      nonce: bytesToHex(nonce),
    },
  };
  const resource = {
    url: `${terms.publicOrigin}/v1/paid`,
    description: 'Data by the call',
    mimeType: 'application/json',
  };
  return {
    paymentPayload: { x402Version: 2, resource, accepted: paymentRequirements, payload },
    paymentRequirements,
  };
}
