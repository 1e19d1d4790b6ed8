import type { SettleResponse } from '@x402/core/types';
import { reasonOf, settledIn } from './answer-receipt.ts';
import { type BuyableOffer, ofChannel } from './offer.ts';
import { type ChannelTerms, leftIn, openChannel } from './open-channel.ts';
import { isBusy } from './present-payment.ts';
import { printable } from './printable.ts';
import { formatUsdc } from './usdc.ts';

/** In milliseconds: a refund takes a few blocks. */
const REFUND_WITHIN_MS = 60_000;

const MAY_BE_UNDER_WAY = '; ask again later, the refund may be under way';

type Say = (line: string) => void;

/**
 * Asks the seller to pay what is left in the channel back to the payer. Throws with the seller's reason. The record keeps its charges, because the next
 * voucher must go on from them. By a receipt that names all that was left, nothing is left. With RPC_URL the next command reads what the chain says.
 */
export async function refundChannel(url: URL, offer: BuyableOffer, terms: ChannelTerms, say: Say): Promise<void> {
  const channel = await openChannel(offer, terms);
  let record = await channel.record();
  say(`left:    ${await channel.left()}`);
  const answers: Response[] = [];
  const watched: typeof fetch = async (input, init) => {
    const isSigned = new Headers(init?.headers).has('payment-signature');
    // The seller may have corrected the record, by a voucher of another device.
    if (isSigned) record = await channel.record();
    const answered = fetch(input, { ...init, redirect: 'manual', signal: AbortSignal.timeout(REFUND_WITHIN_MS) });
    const answer = await answered.catch((cause: unknown) => {
      throw isSigned ? new Error(`no answer${MAY_BE_UNDER_WAY}`, { cause }) : cause;
    });
    answers.push(answer.clone());
    return withOwnEntries(answer, offer);
  };
  const receipt = await channel.scheme.refund(url.href, { fetch: watched }).catch(async (cause: Error) => {
    const last = answers.at(-1);
    // A refusal has a reason that the client understands. For any other answer it says only that the receipt is missing.
    // The client's message may repeat the seller's words, so it is made printable.
    if (!last || last.ok || last.status === 402) throw new Error(printable(cause.message));
    const isOpen = isBusy(last.status) ? MAY_BE_UNDER_WAY : '';
    throw new Error(`status ${last.status}: ${printable(await reasonOf(last, null))}${isOpen}`, { cause });
  });
  const [amount, transaction] = [amountOf(receipt), printable(receipt.transaction)];
  if (!receipt.success) throw new Error(`the seller did not refund: ${printable(receipt.errorReason ?? 'no reason')}`);
  const told = `${amount === null ? 'an unknown amount' : formatUsdc(amount)}, transaction ${transaction}`;
  say(`refund:  ${told}, by the seller's receipt`);
  if (!record) return;
  const isAll = (amount ?? 0n) >= leftIn(record);
  // The client has deleted the record.
  await channel.keep(isAll ? { ...record, balance: record.chargedCumulativeAmount ?? '0' } : record);
  if (!isAll) say('warning: that is less than what was left, so the record of the channel stays as it was');
}

/**
 * The answer with those entries of its 402 alone that are of the offer's channel. Otherwise the client would sign for the channel that the seller names, and
 * correct or delete the record of that one. A refusal's receipt counts only where nothing was refunded: the client would delete the record of this channel.
 */
function withOwnEntries(answer: Response, offer: BuyableOffer): Response {
  if (answer.ok) return answer;
  const headers = new Headers(answer.headers);
  if (settledIn(headers)?.success !== false) headers.delete('payment-response');
  const demand = answer.status === 402 ? headers.get('payment-required') : null;
  const own = demand && ofChannel(demand, offer);
  if (demand !== null && !own)
    throw new Error('the seller asks for another channel than the one of its offer; nothing was signed for that');
  if (own) headers.set('payment-required', own);
  return new Response(answer.body, { status: answer.status, headers });
}

/** The receipt's amount in base units; null where it names none. */
const amountOf = ({ amount }: SettleResponse): bigint | null =>
  /^\d{1,30}$/.test(amount ?? '') ? BigInt(amount ?? '') : null;
