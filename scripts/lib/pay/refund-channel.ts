import type { SettleResponse } from '@x402/core/types';
import { reasonOf } from './answer-receipt.ts';
import { type BuyableOffer, ofChannel } from './offer.ts';
import { type ChannelTerms, openChannel } from './open-channel.ts';
import { printable } from './printable.ts';
import { formatUsdc } from './usdc.ts';

/** In milliseconds: a refund takes a few blocks. */
const REFUND_WITHIN_MS = 60_000;

type Say = (line: string) => void;

/** Asks the seller to pay what is left in the channel back to the payer. Throws with the seller's reason. */
export async function refundChannel(url: URL, offer: BuyableOffer, terms: ChannelTerms, say: Say): Promise<void> {
  const channel = await openChannel(offer, terms);
  const answers: Response[] = [];
  const watched: typeof fetch = async (input, init) => {
    const answer = await fetch(input, { ...init, redirect: 'manual', signal: AbortSignal.timeout(REFUND_WITHIN_MS) });
    answers.push(answer.clone());
    return withOwnEntries(answer, offer);
  };
  const receipt = await channel.scheme.refund(url.href, { fetch: watched }).catch(async (cause: Error) => {
    const last = answers.at(-1);
    // A refusal has a reason that the client understands. For any other answer it says only that the receipt is missing.
    // The client's message repeats the seller's words.
    if (!last || last.ok || last.status === 402) throw new Error(printable(cause.message));
    const isOpen = [409, 503].includes(last.status) ? '; ask again later, the refund may be under way' : '';
    throw new Error(`status ${last.status}: ${printable(await reasonOf(last, null))}${isOpen}`, { cause });
  });
  const [amount, transaction] = [amountOf(receipt), printable(receipt.transaction)];
  if (!receipt.success) throw new Error(`the seller did not refund: ${printable(receipt.errorReason ?? 'no reason')}`);
  say(`refund:  ${amount === null ? 'an unknown amount' : formatUsdc(amount)}, transaction ${transaction}`);
}

/**
 * The answer with those entries of its 402 alone that are of the offer's channel. Otherwise the client would sign for the channel that the seller names, and
 * correct or delete the record of that one.
 */
function withOwnEntries(answer: Response, offer: BuyableOffer): Response {
  const demand = answer.status === 402 ? answer.headers.get('payment-required') : null;
  if (demand === null) return answer;
  const own = ofChannel(demand, offer);
  if (own === null)
    throw new Error('the seller asks for another channel than the one of its offer; nothing was signed for that');
  const headers = new Headers(answer.headers);
  headers.set('payment-required', own);
  return new Response(answer.body, { status: answer.status, headers });
}

/** The receipt's amount in base units; null where it names none. */
const amountOf = ({ amount }: SettleResponse): bigint | null =>
  /^\d{1,30}$/.test(amount ?? '') ? BigInt(amount ?? '') : null;
