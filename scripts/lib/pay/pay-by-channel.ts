import { mkdir } from 'node:fs/promises';
import type { PaymentPayload, SettleResponse } from '@x402/core/types';
import { computeChannelId } from '@x402/evm/batch-settlement/client';
import { FileClientChannelStorage } from '@x402/evm/batch-settlement/client/file-storage';
import { x402HTTPClient } from '@x402/fetch';
import { reasonOf } from './answer-receipt.ts';
import { keepEntries } from './challenge.ts';
import { createChannelClient } from './channel-client.ts';
import { type BuyableOffer, isOfChannel } from './offer.ts';
import { presentPayment } from './present-payment.ts';
import { printable } from './printable.ts';
import { formatUsdc } from './usdc.ts';

type Say = (line: string) => void;

interface ChannelTerms {
  readonly privateKey: `0x${string}`;
  /** The folder with the records of the channels. It is made where it is missing. */
  readonly directory: string;
  /** The most that this call deposits, in base units. */
  readonly maxDeposit: bigint;
  /** Where the client reads the channel; null: its record alone counts. */
  readonly rpcUrl: string | null;
}

const WOULD_PAY_TWICE =
  'the seller claims charges that the voucher just signed may have paid, and gave no answer; nothing more was signed. ' +
  'If another device has bought a call in this channel meanwhile, repeat the command';
/** The scheme's reasons for a voucher that was signed from a missing or old record: `…_cumulative_amount_mismatch`, `…_cumulative_below_claimed`. */
const STALE_RECORD = /_cumulative_(?:amount_mismatch|below_claimed)\b/;
/** In milliseconds: a refund takes a few blocks. */
const REFUND_WITHIN_MS = 60_000;

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
 * the seller's reason, and before anything is signed when the deposit would be above the ceiling.
 */
export async function payByChannel(url: URL, offer: BuyableOffer, terms: ChannelTerms, say: Say): Promise<Buffer> {
  const channel = await openChannel(offer, terms);
  const http = new x402HTTPClient(channel.client);
  for (let isRetry = false; ; isRetry = true) {
    // Pays the offer that was checked. A new request could bring another price.
    const payload = await http.createPaymentPayload(offer.challenge);
    const deposit = depositIn(payload);
    if (deposit !== null) say(`deposit: ${formatUsdc(deposit)} into channel ${channel.id}`);
    const answer = await presentPayment(url, http.encodePaymentSignatureHeader(payload), say).catch(
      (cause: unknown) => {
        throw new Error(openOutcome('no answer', payload), { cause });
      },
    );
    const { recovered, receipt } = await note(http, payload, { answer, offer }, say);
    if (recovered && !isRetry) {
      await answer.body?.cancel();
      if (wouldPayTwice(payload, await channel.charged(), offer)) throw new Error(WOULD_PAY_TWICE);
      say('corrected: the record of the channel was old; signing once more');
      continue;
    }
    if (!answer.ok) {
      const reason = printable(await reasonOf(answer, receipt));
      const failure = `status ${answer.status}: ${reason}`;
      // Whatever the seller says, it holds a signed deposit until that expires.
      const isOpen = deposit !== null || [409, 503].includes(answer.status);
      throw new Error(isOpen ? openOutcome(failure, payload) : `${failure}${adviceOn(reason, terms)}`);
    }
    const body = Buffer.from(await answer.arrayBuffer());
    say(`paid:    ${paidText(offer, receipt)}`);
    say(`left:    ${await channel.left()}`);
    return body;
  }
}

/** Asks the seller to pay what is left in the channel back to the payer. Throws with the seller's reason. */
export async function refundChannel(url: URL, offer: BuyableOffer, terms: ChannelTerms, say: Say): Promise<void> {
  const channel = await openChannel(offer, terms);
  const answers: Response[] = [];
  const watched: typeof fetch = async (input, init) => {
    const answer = await fetch(input, { ...init, redirect: 'manual', signal: AbortSignal.timeout(REFUND_WITHIN_MS) });
    answers.push(answer.clone());
    return answer;
  };
  const receipt = await channel.scheme.refund(url.href, { fetch: watched }).catch(async (cause: unknown) => {
    const last = answers.at(-1);
    // A refusal has a reason that the client understands. For any other answer it says only that the receipt is missing.
    if (!last || last.ok || last.status === 402) throw cause;
    const isOpen = [409, 503].includes(last.status) ? '; ask again later, the refund may be under way' : '';
    throw new Error(`status ${last.status}: ${printable(await reasonOf(last, null))}${isOpen}`, { cause });
  });
  const [amount, transaction] = [amountOf(receipt), printable(receipt.transaction)];
  if (!receipt.success) throw new Error(`the seller did not refund: ${printable(receipt.errorReason ?? 'no reason')}`);
  say(`refund:  ${amount === null ? 'an unknown amount' : formatUsdc(amount)}, transaction ${transaction}`);
}

async function openChannel({ requirement, amountUnits }: BuyableOffer, { directory, ...terms }: ChannelTerms) {
  const network = requirement.network as `eip155:${string}`;
  if (terms.rpcUrl !== null) await checkChain(terms.rpcUrl, network);
  // The records hold signed vouchers.
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const storage = new FileClientChannelStorage({ directory });
  const { asset } = requirement;
  const { client, scheme } = createChannelClient({ ...terms, network, asset, maxUnits: amountUnits, storage });
  const id = computeChannelId(scheme.buildChannelConfig(requirement), network);

  return {
    ...{ client, scheme, id },
    /** What the record says is charged, in base units. */
    charged: async (): Promise<bigint> => BigInt((await storage.get(id))?.chargedCumulativeAmount ?? 0),
    /** What the record says is left, as text. */
    left: async (): Promise<string> => {
      const { balance, chargedCumulativeAmount = '0' } = (await storage.get(id)) ?? {};
      if (balance === undefined) return `unknown, in channel ${id}`;
      return `${formatUsdc(BigInt(balance) - BigInt(chargedCumulativeAmount))} in channel ${id}`;
    },
  };
}

/** Throws unless the endpoint is on the seller's chain. A channel of another chain would be read as empty. */
async function checkChain(rpcUrl: string, network: string): Promise<void> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] });
  const headers = { 'content-type': 'application/json' };
  const signal = AbortSignal.timeout(REFUND_WITHIN_MS);
  const answer = await fetch(rpcUrl, { method: 'POST', headers, body, signal })
    .then((response) => response.json() as Promise<{ result?: unknown }>)
    .catch((cause: unknown) => {
      throw new Error('RPC_URL gives no answer; nothing was signed', { cause });
    });
  const found = typeof answer.result === 'string' ? `eip155:${Number(answer.result)}` : 'no chain';
  if (found !== network) throw new Error(`RPC_URL is on ${found}, the offer on ${network}; nothing was signed`);
}

/**
 * Lets the client note what the answer says of the channel that was paid from. Without this, a 402 could name another seller's channel, and the client
 * would correct the record of that one. A receipt that the client refuses must not cost the buyer the answer.
 */
async function note(
  http: x402HTTPClient,
  payload: PaymentPayload,
  { answer, offer }: { answer: Response; offer: BuyableOffer },
  say: Say,
) {
  try {
    const get = (name: string): string | null => {
      const text = answer.headers.get(name);
      const isDemand = text !== null && name.toLowerCase() === 'payment-required';
      return isDemand ? keepEntries(text, (entry) => isOfChannel(entry, offer)) : text;
    };
    const { recovered, settleResponse } = await http.processPaymentResult(payload, get, answer.status);
    return { recovered, receipt: settleResponse ?? null };
  } catch (error) {
    say(`warning: the receipt was refused, and the channel's record is as before: ${printable(String(error))}`);
    return { recovered: false, receipt: null };
  }
}

/**
 * Whether a second voucher could pay the seller more than the one just signed (`max`) and the corrected charges may come from that one:
 * `charged <= max < charged + price`. Below that, the second one covers no more than the first. Above it, another device has signed.
 */
function wouldPayTwice({ payload }: PaymentPayload, charged: bigint, { amountUnits: price }: BuyableOffer): boolean {
  const max = BigInt((payload as { voucher: { maxClaimableAmount: string } }).voucher.maxClaimableAmount);
  return charged <= max && max < charged + price;
}

/** What a buyer can do about a record that is missing or old, where the client could read the channel nowhere. */
function adviceOn(reason: string, { rpcUrl }: ChannelTerms): string {
  if (rpcUrl !== null || !STALE_RECORD.test(reason)) return '';
  return '; the record of this channel is missing or old: repeat the command with RPC_URL, and it is corrected from the chain';
}

function paidText({ amountUnits }: BuyableOffer, receipt: SettleResponse | null): string {
  const price = formatUsdc(amountUnits);
  if (!receipt?.success) return `${price} was signed, but the answer came without a receipt`;
  return receipt.transaction
    ? `${price} with a deposit, transaction ${printable(receipt.transaction)}`
    : `${price} by voucher`;
}

function depositIn({ payload }: PaymentPayload): bigint | null {
  const { deposit } = payload as { deposit?: { amount: string } };
  return deposit ? BigInt(deposit.amount) : null;
}

/** The receipt's amount in base units; null where it names none. */
const amountOf = ({ amount }: SettleResponse): bigint | null =>
  /^\d{1,30}$/.test(amount ?? '') ? BigInt(amount ?? '') : null;

/** The message for a payment whose outcome is not known. */
function openOutcome(failure: string, { payload }: PaymentPayload): string {
  const { deposit } = payload as { deposit?: { authorization: { erc3009Authorization: { validBefore: string } } } };
  const again = `${failure}; whether it is charged is open. Repeat the same command: the same voucher is never charged twice`;
  const until = deposit?.authorization.erc3009Authorization.validBefore;
  return until
    ? `${failure}; whether the deposit is made is open until ${until} (Unix seconds). Then repeat the command with RPC_URL`
    : again;
}
