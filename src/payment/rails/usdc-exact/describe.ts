import type { PaymentRequirements } from '@x402/core/types';
import { USDC_DECIMALS } from '../../../lib/units.ts';
import { MAX_TIMEOUT_SECONDS } from '../../evm/eip3009.ts';
import { USDC_DOMAIN } from '../../evm/token.ts';
import type { RailInfo } from '../../rail.ts';

/** `extra` of this rail's requirements, as a facilitator gets them. */
export const EXACT_EXTRA = { ...USDC_DOMAIN, assetTransferMethod: 'eip3009' };

/** The chain, token and recipient of a payment. */
export interface PayTo {
  readonly network: `eip155:${number}`;
  readonly usdc: `0x${string}`;
  readonly payTo: `0x${string}`;
}

/** Makes this rail's entry in a challenge: an authorization of the token itself. `units` in USDC base units. */
export function exactRequirement(units: bigint, { network, usdc, payTo }: PayTo): PaymentRequirements {
  return {
    scheme: 'exact',
    network,
    amount: units.toString(),
    asset: usdc,
    payTo,
    maxTimeoutSeconds: MAX_TIMEOUT_SECONDS,
    // Some clients cannot show an amount without it, and do not pay.
    extra: { ...EXACT_EXTRA, decimals: USDC_DECIMALS },
  };
}

/** Gas of a lone payment, as it was seen on Arc (docs/benchmarks.md, "What a call costs the seller"). */
const LONE_PAYMENT_GAS = 112_519n;

/**
 * The plain rail. It is always on, because payments for earlier offers must end; a 402 lists it from `exactFrom` on.
 * Where a facilitator settles it, `/readyz` fails while the facilitator's probe fails. Sales go on.
 */
export const exactInfo: RailInfo = {
  name: 'usdc-exact',
  isOn: () => true,
  contract: ({ network }) => network.usdc,
  takesFromBalance: true,
  entry: (plain) => plain,
  sells: (price, { exactFrom }) => exactFrom !== null && price >= exactFrom,
  gasOfCall: ({ remote }) => (remote ? 0n : LONE_PAYMENT_GAS),
  service: ({ remote }) => remote && { name: 'facilitator', isVital: true },
};
