import { decodePaymentResponseHeader } from '@x402/core/http';
import type { SettleResponse } from '@x402/core/types';
import { challengeErrorOf } from './challenge.ts';
import { problemDetail } from './problem-detail.ts';

/** The receipt in PAYMENT-RESPONSE. Null without one that can be read. */
export function settledIn(headers: Headers): SettleResponse | null {
  try {
    return decodePaymentResponseHeader(headers.get('payment-response') ?? '');
  } catch {
    return null;
  }
}

/** Whether a receipt says that a payment was taken, and names its transaction. The seller's JSON may have anything there. */
export const namesTransaction = (receipt: SettleResponse | null): receipt is SettleResponse =>
  receipt?.success === true && typeof receipt.transaction === 'string' && receipt.transaction !== '';

/** Why a presented payment got no answer: the receipt's reason, else the challenge's, else the body's. */
export async function reasonOf(answer: Response, receipt = settledIn(answer.headers)): Promise<string> {
  const reason = receipt?.errorReason ?? challengeErrorOf(answer.headers);
  return reason ?? problemDetail(await answer.text().catch(() => '')) ?? 'no reason given';
}
