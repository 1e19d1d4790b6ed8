import type { PaymentRequirements } from '@x402/core/types';
import { GATEWAY_DOMAIN } from '../../evm/gateway-domain.ts';

/** The second entry of a challenge: the plain entry, to be signed for the Gateway Wallet. */
export function gatewayRequirement(plain: PaymentRequirements, wallet: `0x${string}`): PaymentRequirements {
  return { ...plain, extra: gatewayExtra(wallet) };
}

/** `extra` of the Gateway's requirements. */
export function gatewayExtra(wallet: `0x${string}`) {
  return { ...GATEWAY_DOMAIN, verifyingContract: wallet };
}

/** Whether a payment's `accepted` names the Gateway's rail. Any other payment is checked as a plain payment. */
export function isGatewayAccepted(accepted: Record<string, unknown>): boolean {
  const { extra } = accepted;
  return typeof extra === 'object' && extra !== null && 'name' in extra && extra.name === GATEWAY_DOMAIN.name;
}
