import type { PaymentPayload, PaymentRequirements } from '@x402/core/types';
import { bytesToHex } from '../../../lib/hex.ts';
import type { Authorization } from '../../authorization.ts';
import { MAX_TIMEOUT_SECONDS } from '../../evm/eip3009.ts';

/** What every request to a facilitator contains besides the authorization. */
export interface RequestTerms {
  readonly network: `eip155:${number}`;
  readonly usdc: `0x${string}`;
  /** Names the EIP-712 domain that the payer signed under. */
  readonly extra: Readonly<Record<string, unknown>>;
  readonly publicOrigin: string;
}

/** A settlement request in x402's form. */
export interface SettleRequest {
  readonly paymentPayload: PaymentPayload;
  readonly paymentRequirements: PaymentRequirements;
}

/**
 * Makes the request that settles an authorization, from the authorization and `terms` alone. So it is the same before and after a restart, and does
 * not show what was bought. Its resource is our price list, because Circle requires a resource.
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
