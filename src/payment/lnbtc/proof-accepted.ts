import { own } from '../../lib/own-property.ts';
import type { LnbtcReason } from './proof-reasons.ts';

const COMPARED: readonly (readonly [member: string, reason: LnbtcReason])[] = [
  ['network', 'network_mismatch'],
  ['amount', 'invalid_exact_lnbtc_amount_mismatch'],
  ['asset', 'invalid_exact_lnbtc_asset'],
  ['payTo', 'invalid_exact_lnbtc_pay_to_mismatch'],
  ['maxTimeoutSeconds', 'invalid_exact_lnbtc_max_timeout_mismatch'],
];

/** Step 1: the buyer accepted the requirement. Compares member by member, strictly: a number does not equal its string. Null when they agree. */
export function compareAccepted(accepted: unknown, requirement: unknown): LnbtcReason | null {
  const isObject = typeof accepted === 'object' && accepted !== null;
  if (!isObject || own(accepted, 'scheme') !== own(requirement, 'scheme')) return 'unsupported_scheme';
  const differing = COMPARED.find(([member]) => own(accepted, member) !== own(requirement, member));
  return differing?.[1] ?? null;
}
