import type { PaymentPayload, SettleResponse } from '@x402/core/types';
import { x402HTTPClient } from '@x402/fetch';
import { namesTransaction, reasonOf, settledIn } from './answer-receipt.ts';
import { challengeErrorOf } from './challenge.ts';
import { type BuyableOffer, ofChannel } from './offer.ts';
import { type ChannelTerms, openChannel } from './open-channel.ts';
import { CutOff, dropBody, isBusy, presentPayment } from './present-payment.ts';
import { printable } from './printable.ts';
import { signOffer } from './stock-client.ts';
import { formatUsdc } from './usdc.ts';

type Say = (line: string) => void;

const WOULD_PAY_TWICE =
  'the seller claims charges that the voucher just signed may have paid, and gave no answer; nothing more was signed';
const OTHER_DEVICE = 'If another device has bought a call in this channel meanwhile, repeat the command';
const MAY_BE_CHARGED =
  'whether this call is charged is open. Repeat the same command, before any other call in this channel: the same voucher is never charged twice';
const THEN_USE_RPC = 'Then repeat the command with RPC_URL';
const PAYS_AGAIN = 'Repeating the command may pay again';
/** The scheme's reasons for a voucher that was signed from a missing or old record: `…_cumulative_amount_mismatch`, `…_cumulative_below_claimed`. */
const STALE_RECORD = /_cumulative_(?:amount_mismatch|below_claimed)\b/;

/** What a buyer should know before it deposits, as one line. */
export function channelTermsText({ requirement: { extra } }: BuyableOffer): string {
  const least =
    typeof extra.minDeposit === 'string'
      ? `deposits of ${formatUsdc(BigInt(extra.minDeposit))} and more`
      : 'any deposit';
  return `${least}; without the seller, the payer can withdraw after ${Number(extra.withdrawDelay) / 3600} h`;
}

/**
 * Pays a checked offer with the official client of payment channels and returns the answer's body. The record of the channel stays on disk. Throws with
 * the seller's reason. A deposit above the ceiling is refused before it is signed; a voucher may have been signed before it.
 */
export async function payByChannel(url: URL, offer: BuyableOffer, terms: ChannelTerms, say: Say): Promise<Buffer> {
  const channel = await openChannel(offer, terms);
  const http = new x402HTTPClient(channel.client);
  const openDeposits: string[] = [];
  const failed = failureWith(openDeposits);
  let highest = 0n;
  for (let isRetry = false; ; isRetry = true) {
    if (isRetry) say('corrected: the record of the channel was old; signing once more');
    // Pays the offer that was checked. A new request could bring another price.
    const payload = await signOffer(http, offer).catch((cause: Error) => {
      throw isRetry ? failed(cause.message) : cause;
    });
    const [deposit, max] = [depositIn(payload), maxClaimableIn(payload)];
    if (max > highest) highest = max;
    if (deposit) {
      say(`deposit: ${deposit.amount} into channel ${channel.id}`);
      openDeposits.push(`whether the deposit of ${deposit.amount} is made is open until ${deposit.until}`);
    }
    const signed = { headers: http.encodePaymentSignatureHeader(payload), deposit, openDeposits, channel };
    const { answer, body } = await presentSigned(url, signed, say);
    const [charged, deposited] = [await channel.charged(), await channel.deposited()];
    const { recovered, receipt } = await note(http, payload, { answer, offer, rpcUrl: terms.rpcUrl }, say);
    if (recovered) {
      await dropBody(answer);
      if (wouldPayTwice(highest, await channel.charged(), offer))
        throw failed(WOULD_PAY_TWICE, undefined, openDeposits.length > 0 ? PAYS_AGAIN : OTHER_DEVICE);
      if (!isRetry) continue;
    }
    if (deposit && namesTransaction(receipt)) {
      openDeposits.pop();
      await channel.noteDeposit(deposit.units, deposited);
    }
    if (!answer.ok) {
      const taken = recovered ? 0n : (await channel.charged()) - charged;
      const text = await refusalText(answer, taken, terms, openDeposits);
      throw failed(text, undefined, taken > 0n ? PAYS_AGAIN : undefined);
    }
    say(`paid:    ${paidText(offer, receipt, deposit !== null)}`);
    say(`left:    ${await channel.left()}`);
    for (const text of openDeposits) say(`open:    ${text}. Use RPC_URL for the next call`);
    return body;
  }
}

interface Presentation {
  readonly headers: Record<string, string>;
  /** The deposit that goes with the voucher. Null without one. */
  readonly deposit: ReturnType<typeof depositIn>;
  /** What the buyer is told of each deposit that may be made, the last one of this deposit. It is removed once a receipt says that the deposit is made. */
  readonly openDeposits: string[];
  readonly channel: Awaited<ReturnType<typeof openChannel>>;
}

/**
 * Presents a voucher. Returns its answer, or a refusal that is final. Throws while it is open whether the voucher is charged. The record then stays as it
 * was, so the next call signs the same voucher.
 */
async function presentSigned(url: URL, { headers, deposit, openDeposits, channel }: Presentation, say: Say) {
  const failed = failureWith(openDeposits);
  const maybeCharged = deposit ? '' : `; ${MAY_BE_CHARGED}`;
  /** Notes a deposit that is made by the receipt of an answer which was cut off. Returns the error's text of what that answer did. */
  const noteCut = async (cut: Headers): Promise<string> => {
    const receipt = settledIn(cut);
    if (!deposit || !namesTransaction(receipt)) return maybeCharged;
    openDeposits.pop();
    await channel.noteDeposit(deposit.units);
    return `; by its receipt the deposit is made, transaction ${printable(receipt.transaction)}; ${MAY_BE_CHARGED}`;
  };
  const { answer, body, cutOff } = await presentPayment(url, headers, say).catch(async (cause: unknown) => {
    if (cause instanceof CutOff) throw failed(`${cause.message}${await noteCut(cause.headers)}`);
    throw failed(`no answer${maybeCharged}`, cause);
  });
  if (answer.ok || !(cutOff || isBusy(answer.status))) return { answer, body };
  const more = cutOff ? `; an earlier answer was cut off${await noteCut(cutOff)}` : maybeCharged;
  throw failed(`status ${answer.status}: ${printable(await reasonOf(answer))}${more}`);
}

/**
 * Lets the client note what the answer says of the channel that was paid from. Without this, a 402 could name another seller's channel, and the client
 * would correct the record of that one. A receipt that the client refuses must not cost the buyer the answer. A receipt of a refusal counts only where
 * nothing was taken, and where an earlier answer was bought and is gone: with 410, and with the reason of a stale voucher for a buyer who cannot read the
 * chain. Otherwise the next call would sign for a further one.
 */
async function note(
  http: x402HTTPClient,
  payload: PaymentPayload,
  { answer, offer, rpcUrl }: { answer: Response; offer: BuyableOffer; rpcUrl: string | null },
  say: Say,
) {
  try {
    const get = (name: string): string | null => {
      const text = answer.headers.get(name);
      if (text === null) return null;
      if (name.toLowerCase() === 'payment-required') return ofChannel(text, offer);
      const isStale = rpcUrl === null && STALE_RECORD.test(challengeErrorOf(answer.headers) ?? '');
      const isGone = answer.status === 410 || (answer.status === 402 && isStale);
      const counts = answer.ok || isGone || settledIn(answer.headers)?.success === false;
      return name.toLowerCase() === 'payment-response' && !counts ? null : text;
    };
    const { recovered, settleResponse } = await http.processPaymentResult(payload, get, answer.status);
    return { recovered, receipt: settleResponse ?? null };
  } catch (error) {
    say(`warning: the receipt was refused, and the channel's record is as before: ${printable(String(error))}`);
    return { recovered: false, receipt: null };
  }
}

const maxClaimableIn = ({ payload }: PaymentPayload): bigint =>
  BigInt((payload as { voucher: { maxClaimableAmount: string } }).voucher.maxClaimableAmount);

/**
 * Whether another voucher could pay the seller more than the highest that this command has signed (`max`), and the corrected charges may come from that one:
 * `charged <= max < charged + price`. Below that, another one covers no more than the first. Above it, another device has signed.
 */
function wouldPayTwice(max: bigint, charged: bigint, { amountUnits: price }: BuyableOffer): boolean {
  return charged <= max && max < charged + price;
}

/** Makes the command's errors. Each tells of the signed deposits that may be made: whatever the seller answers, it holds them until they expire. */
function failureWith(openDeposits: readonly string[]) {
  return (text: string, cause?: unknown, advice = openDeposits.length > 0 ? THEN_USE_RPC : '') =>
    new Error(`${[text, ...openDeposits].join('; ')}${advice && `. ${advice}`}`, { cause });
}

/** Why a voucher got no answer, and what its receipt says was taken all the same, in base units. */
async function refusalText(answer: Response, taken: bigint, terms: ChannelTerms, openDeposits: readonly string[]) {
  const reason = printable(await reasonOf(answer));
  const told = taken > 0n ? `; by its receipt ${formatUsdc(taken)} is charged` : '';
  return `status ${answer.status}: ${reason}${told}${adviceOn(reason, terms, openDeposits)}`;
}

/** What a buyer can do about a record that is missing or old, where the client could read the channel nowhere. */
function adviceOn(reason: string, { rpcUrl }: ChannelTerms, openDeposits: readonly string[]): string {
  // With a second deposit the buyer would have two at the seller.
  if (rpcUrl !== null || openDeposits.length > 0 || !STALE_RECORD.test(reason)) return '';
  return '; the record of this channel is missing or old: repeat the command with RPC_URL, and it is corrected from the chain';
}

function paidText({ amountUnits }: BuyableOffer, receipt: SettleResponse | null, hasDeposit: boolean): string {
  const price = formatUsdc(amountUnits);
  if (!receipt?.success) return `${price} was signed, but the answer came without a receipt`;
  if (namesTransaction(receipt)) return `${price} with a deposit, transaction ${printable(receipt.transaction)}`;
  return hasDeposit ? `${price} with a deposit, whose transaction the receipt does not name` : `${price} by voucher`;
}

interface SignedDeposit {
  readonly amount: string;
  readonly authorization: { readonly erc3009Authorization: { readonly validBefore: string } };
}

/** A payment's deposit, as a buyer is told of it; null without one. */
function depositIn({
  payload,
}: PaymentPayload): { readonly units: bigint; readonly amount: string; readonly until: string } | null {
  const { deposit } = payload as { deposit?: SignedDeposit };
  if (!deposit) return null;
  const until = `${deposit.authorization.erc3009Authorization.validBefore} (Unix seconds)`;
  const units = BigInt(deposit.amount);
  return { units, amount: formatUsdc(units), until };
}
