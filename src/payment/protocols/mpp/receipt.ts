import type { Fields, Paid } from '../../protocol.ts';
import { encodeCanonical } from './challenge.ts';

/**
 * The fields that carry a receipt of the auth scheme `Payment`. A refused settlement has none, because errors carry no receipt. `chainId`: of a payment on a
 * chain.
 */
export function receiptFields(
  method: string,
  { receipt: { success, transaction }, credential, at }: Paid,
  chainId?: number,
): Fields {
  if (!success || at === null) return [];
  const timestamp = new Date(at).toISOString();
  // The reference is the transaction's hash or the payment hash. A preimage stands nowhere.
  const receipt = {
    ...(chainId !== undefined && { chainId }),
    ...(credential?.challengeId !== undefined && { challengeId: credential.challengeId }),
    ...{ method, reference: transaction, status: 'success', timestamp },
  };
  return [['payment-receipt', encodeCanonical(receipt)]];
}
