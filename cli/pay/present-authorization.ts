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

/**
 * Presents a signed authorization and returns the answer's body. Whoever holds the authorization can charge it until it expires, whatever the seller says.
 * So its nonce is told before it is presented, and each error says until when it is open, or by which transaction it is paid.
 */
export async function presentAuthorization(url: URL, signed: Signed, say: Say): Promise<Buffer> {
  const { amountUnits, nonce, validBefore } = signed;
  say(`signed:  nonce ${nonce}, until ${validBefore} (Unix seconds)`);
  const open = `the authorization can be charged until ${validBefore} (Unix seconds), its nonce is ${nonce}`;
  /** What answers with these headers say of the payment. */
  const outcomeBy = (...answers: Headers[]): string => {
    const transaction = answers.map((headers) => signed.transactionIn(headers)).find((one) => one !== null);
    if (transaction === undefined) return open;
    return `by its receipt it is paid, transaction ${printable(transaction)}; its nonce is ${nonce}`;
  };
  const { answer, body, cutOff } = await presentPayment(url, signed.headers, say).catch((cause: unknown) => {
    if (cause instanceof CutOff) throw new Error(`${cause.message}; ${outcomeBy(cause.headers)}`);
    throw new Error(`no answer; ${open}`, { cause });
  });
  if (!answer.ok) {
    const failure = `status ${answer.status}: ${printable(await reasonOf(answer))}`;
    if (cutOff) throw new Error(`${failure}; an earlier answer was cut off; ${outcomeBy(answer.headers, cutOff)}`);
    throw new Error(`${failure}; ${outcomeBy(answer.headers)}`);
  }
  const transaction = signed.transactionIn(answer.headers);
  if (transaction !== null) say(`paid:    ${formatUsdc(amountUnits)}, transaction ${printable(transaction)}`);
  else say(`paid:    ${formatUsdc(amountUnits)} was authorized, but the answer came without a receipt; ${open}`);
  return body;
}
