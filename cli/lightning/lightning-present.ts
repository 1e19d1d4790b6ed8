import { reasonOf, settledIn } from '../pay/answer-receipt.ts';
import { receiptReference } from '../pay/payment-challenge.ts';
import { presentPayment } from '../pay/present-payment.ts';
import { printable } from '../pay/printable.ts';
import { type LightningProof, proofHeader } from './lightning-proof-file.ts';

/** After a payment, a failure that is not the buyer's fault is worth another try, because the proof stays valid. */
function isWorthAgain(status: number): boolean {
  return status === 409 || status === 429 || status >= 500;
}

/**
 * Presents a complete proof to its seller and returns the answer's complete body. Throws after several attempts: the seller's reason, or that the
 * answer was cut off.
 */
export async function presentProof(proof: LightningProof, say: (line: string) => void): Promise<Buffer> {
  const { answer, body } = await presentPayment(new URL(proof.url), proofHeader(proof), say, isWorthAgain);
  if (!answer.ok) throw new Error(`status ${answer.status}: ${printable(await reasonOf(answer))}`);
  if (!isReceiptedIn(answer.headers, proof)) say('the answer came without a receipt for this payment');
  return body;
}

/** Whether the answer's receipt names this payment. L402 has no receipts. */
function isReceiptedIn(headers: Headers, { protocol, paymentHash }: LightningProof): boolean {
  if (protocol === 'l402') return true;
  const reference = protocol === 'mpp' ? receiptReference(headers) : settledIn(headers)?.transaction;
  return reference === paymentHash;
}
