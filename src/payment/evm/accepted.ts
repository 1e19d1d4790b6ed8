import type { PaymentRequirements } from '@x402/core/types';
import type { Accepted } from '../protocol.ts';
import { PaymentRefused } from '../refusal.ts';

/** Throws PaymentRefused when a payment's `accepted` is not the offer's requirement. A client may add to `extra` but may not change it. */
export function checkAccepted(accepted: Accepted, requirement: PaymentRequirements): void {
  const same = (key: 'scheme' | 'network' | 'amount' | 'maxTimeoutSeconds') => accepted[key] === requirement[key];
  const sameAddress = (key: 'asset' | 'payTo') => lower(accepted[key]) === lower(requirement[key]);
  if (accepted.network !== requirement.network && typeof accepted.network === 'string') {
    throw new PaymentRefused('invalid_exact_evm_network_mismatch');
  }
  const extra = (accepted.extra ?? {}) as Record<string, unknown>;
  const extraHolds =
    typeof extra === 'object' && Object.entries(requirement.extra).every(([key, value]) => extra[key] === value);
  const core = same('scheme') && same('network') && same('amount') && same('maxTimeoutSeconds');
  if (!core || !sameAddress('asset') || !sameAddress('payTo') || !extraHolds) {
    throw new PaymentRefused('No matching payment requirements');
  }
}

function lower(value: unknown): unknown {
  return typeof value === 'string' ? value.toLowerCase() : value;
}
