import type { PaymentRequirements } from '@x402/core/types';
import type { Accepted } from '../protocol.ts';
import { NOT_OFFERED, PaymentRefused } from '../refusal.ts';

const SAME = ['scheme', 'network', 'amount', 'maxTimeoutSeconds'] as const;
const SAME_ADDRESS = ['asset', 'payTo'] as const;
/** Members of `extra` that change no term. Offers of earlier versions lack them, and those are still paid. */
const MAY_LACK: ReadonlySet<string> = new Set(['decimals']);

/** Throws PaymentRefused when a payment's `accepted` is not the offer's requirement. A client may add to `extra` but may not change it. */
export function checkAccepted(accepted: Accepted, requirement: PaymentRequirements): void {
  const { network } = requirement;
  if (accepted.network !== network && typeof accepted.network === 'string') {
    const detail = `The payment is for another network. Sign for ${network}, the network of the entries of accepts.`;
    throw new PaymentRefused('invalid_exact_evm_network_mismatch', { detail });
  }
  const extra = (accepted.extra ?? {}) as Record<string, unknown>;
  const holds = ([key, value]: [string, unknown]): boolean =>
    extra[key] === value || (MAY_LACK.has(key) && extra[key] === undefined);
  const extraHolds = typeof extra === 'object' && Object.entries(requirement.extra).every(holds);
  const differing = [
    ...SAME.filter((key) => accepted[key] !== requirement[key]),
    ...SAME_ADDRESS.filter((key) => lower(accepted[key]) !== lower(requirement[key])),
    ...(extraHolds ? [] : ['extra']),
  ];
  if (differing.length > 0) throw new PaymentRefused(NOT_OFFERED, { detail: otherTerms(differing) });
}

function otherTerms(differing: readonly string[]): string {
  return `The accepted terms differ from the offered ones in ${differing.join(', ')}. Send back an entry of accepts unchanged, and sign for it.`;
}

function lower(value: unknown): unknown {
  return typeof value === 'string' ? value.toLowerCase() : value;
}
