import { reasonOf } from './answer-receipt.ts';
import { CutOff, presentPayment } from './present-payment.ts';
import { printable } from './printable.ts';
import { formatUsdc } from './usdc.ts';

type Say = (line: string) => void;

/** A signed authorization of USDC, and how its answer names the payment. */
interface Signed {
  /** The header that presents it. */
  readonly headers: Record<string, string>;
  readonly amountUnits: bigint;
  readonly nonce: string;
  /** Unix seconds. */
  readonly validBefore: string;
  /** The transaction that an answer's receipt names. Null without a receipt of a payment that was taken. */
  transactionIn(headers: Headers): string | null;
}

/** Presents a signed authorization and returns the answer's body. Throws with the seller's reason, and with the nonce while the outcome is open. */
export async function presentAuthorization(url: URL, signed: Signed, say: Say): Promise<Buffer> {
  const { amountUnits, nonce, validBefore } = signed;
  // The authorization stays valid until it expires, so the buyer must know its nonce before signing another.
  const open = `whether it is charged is open until ${validBefore} (Unix seconds), its nonce is ${nonce}`;
  /** What an answer that was cut off says of the payment. */
  const afterCut = (headers: Headers): string => {
    const transaction = signed.transactionIn(headers);
    if (transaction === null) return open;
    return `by its receipt it is paid, transaction ${printable(transaction)}; its nonce is ${nonce}, until ${validBefore} (Unix seconds)`;
  };
  const { answer, body, cutOff } = await presentPayment(url, signed.headers, say).catch((cause: unknown) => {
    const failure = cause instanceof CutOff ? `${cause.message}; ${afterCut(cause.headers)}` : `no answer; ${open}`;
    throw new Error(failure, { cause });
  });
  if (!answer.ok) {
    const failure = `status ${answer.status}: ${printable(await reasonOf(answer))}`;
    if (cutOff) throw new Error(`${failure}; an earlier answer was cut off; ${afterCut(cutOff)}`);
    throw new Error([409, 503].includes(answer.status) ? `${failure}; ${open}` : failure);
  }
  const transaction = signed.transactionIn(answer.headers);
  if (transaction !== null) say(`paid:    ${formatUsdc(amountUnits)}, transaction ${printable(transaction)}`);
  else say(`paid:    ${formatUsdc(amountUnits)} was authorized, but the answer came without a receipt`);
  return body;
}
