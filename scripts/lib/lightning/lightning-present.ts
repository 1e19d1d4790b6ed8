import { decodePaymentResponseHeader } from '@x402/core/http';
import { challengeErrorOf } from '../pay/challenge.ts';
import { presentPayment } from '../pay/present-payment.ts';
import { printable } from '../pay/printable.ts';
import { problemDetail } from '../pay/problem-detail.ts';
import { type LightningProof, proofHeader } from './lightning-proof-file.ts';

/** After a payment, whatever is not the buyer's fault is worth another try with the same proof: it stays good. */
function isWorthAgain(status: number): boolean {
  return status === 409 || status === 429 || status >= 500;
}

/**
 * Shows a complete proof to the seller it was made for and returns the answer's body, read to its end.
 * Throws with the seller's reason when there is none after several attempts.
 */
export async function presentProof(proof: LightningProof, say: (line: string) => void): Promise<Buffer> {
  const answer = await presentPayment(new URL(proof.url), proofHeader(proof), say, isWorthAgain);
  if (!answer.ok) throw new Error(`status ${answer.status}: ${printable(await reasonOf(answer))}`);
  const body = Buffer.from(await answer.arrayBuffer());
  const receipt = receiptOf(answer.headers);
  if (receipt?.transaction !== proof.paymentHash) say('the answer came without a receipt for this payment');
  return body;
}

async function reasonOf(answer: Response): Promise<string> {
  const reason = receiptOf(answer.headers)?.errorReason ?? challengeErrorOf(answer.headers);
  return reason ?? problemDetail(await answer.text().catch(() => '')) ?? 'no reason given';
}

function receiptOf(headers: Headers) {
  try {
    return decodePaymentResponseHeader(headers.get('payment-response') ?? '');
  } catch {
    return null;
  }
}
