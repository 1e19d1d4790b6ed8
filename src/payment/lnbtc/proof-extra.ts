import { jcs } from '../../lib/jcs.ts';
import { own, ownKeys } from '../../lib/own-property.ts';
import { httpParams, isRequestHash, mcpParams } from './binding-syntax.ts';
import type { LnbtcReason } from './proof-reasons.ts';

/** The request that the invoice must be bound to. */
export interface BoundRequest {
  /** 64 lower-case hex characters. */
  readonly requestHash: string;
}

/** The members with checks of their own. Only `invoice` may differ. */
const JUDGED_APART: ReadonlySet<PropertyKey> = new Set([
  'assetTransferMethod',
  'paymentFlow',
  'invoice',
  'requestHash',
  'requestBindingProfile',
  'requestBindingParams',
]);

/** Step 3: checks the `extra` of both sides, in the scheme's order. The client may add members. */
export function checkExtra(accepted: unknown, required: unknown): BoundRequest | LnbtcReason {
  const sides = [required, accepted];
  // 1. The transfer method: of the requirement, then of the accepted side. Steps 2 and 3 keep this order.
  if (!sides.every(isBolt11)) return 'invalid_exact_lnbtc_asset_transfer_method';
  // 2. The payment flow: settled before the request is served.
  if (!sides.every((side) => own(side, 'paymentFlow') === 'upfront')) return 'invalid_exact_lnbtc_payment_flow';
  // 3. A readable binding.
  const ours = readBinding(required);
  const theirs = ours && readBinding(accepted);
  if (!ours || !theirs) return 'invalid_exact_lnbtc_request_binding';
  // 4. The same request: hash, profile and parameters.
  if (ours.requestHash !== theirs.requestHash || ours.profile !== theirs.profile || ours.params !== theirs.params)
    return 'invalid_exact_lnbtc_request_mismatch';
  // 5. Every other member that the server declared.
  const declared = ownKeys(required);
  if (!declared?.every((key) => JUDGED_APART.has(key) || isSameData(own(required, key), own(accepted, key))))
    return 'invalid_exact_lnbtc_extra_mismatch';
  return { requestHash: ours.requestHash };
}

/** Whether the transfer method is bolt11, by default or by name. */
function isBolt11(extra: unknown): boolean {
  const method = own(extra, 'assetTransferMethod');
  return method === undefined || method === 'bolt11';
}

/** The binding of one side, with its parameters in canonical form. Null when it does not have the syntax of a profile. */
function readBinding(extra: unknown): { requestHash: string; profile: string; params: string | null } | null {
  const requestHash = own(extra, 'requestHash');
  const profile = own(extra, 'requestBindingProfile');
  if (!isRequestHash(requestHash) || (profile !== 'http:1' && profile !== 'mcp:1')) return null;
  const given = own(extra, 'requestBindingParams');
  const params = profile === 'http:1' ? httpParams(given) : mcpParams(given);
  return params && { requestHash, profile, params: jcs(params) };
}

/** A value that is not JSON equals nothing, not even itself. */
function isSameData(a: unknown, b: unknown): boolean {
  const text = jcs(a);
  return text !== null && text === jcs(b);
}
