import { mkdir } from 'node:fs/promises';
import { decodePaymentSignatureHeader } from '@x402/core/http';
import type { PaymentPayload, SettleResponse } from '@x402/core/types';
import { toClientEvmSigner } from '@x402/evm';
import {
  type BatchSettlementDepositStrategyContext,
  BatchSettlementEvmScheme,
  type ClientChannelStorage,
  computeChannelId,
  parseAnnouncedMinDeposit,
  readChannelBalanceAndTotalClaimed,
} from '@x402/evm/batch-settlement/client';
import { FileClientChannelStorage } from '@x402/evm/batch-settlement/client/file-storage';
import { x402Client, x402HTTPClient } from '@x402/fetch';
import { createPublicClient, http } from 'viem';
import { privateKeyToAccount } from 'viem/accounts';
import { challengeErrorOf } from '../challenges.ts';
import { formatUsdc } from '../money.ts';
import { printable } from '../printable.ts';
import {
  CutOff,
  isAnswer,
  isBusy,
  namesTransaction,
  type Presenting,
  present,
  type Reply,
  reasonOf,
  type Seller,
  saysUncharged,
  settledIn,
} from '../seller.ts';
import { type ChannelOffer, ofChannel, signOffer } from './channel-offer.ts';
import { Refused } from './way.ts';

// USDC over a payment channel: one deposit, then a signed voucher for each call, with the official client.
// 1. `openChannel` opens the buyer's record of the channel, corrected from the chain.
// 2. `payByChannel` counts, signs, keeps and presents a voucher, and once more after a correction of the record.
// 3. `refundChannel` asks the seller for the rest.
// The record is a file of the official client, so that its own programs can go on in the same channel.

interface ChannelClientTerms {
  readonly privateKey: `0x${string}`;
  readonly network: `eip155:${string}`;
  readonly asset: string;
  /** The most that the client signs for in one call, in the asset's base units. */
  readonly maxUnits: bigint;
  /** The most that all deposits of this client take together, in base units. */
  readonly maxDeposit: bigint;
  /** Where the client reads the channel's balance. Null: its storage alone counts, and it cannot correct itself. */
  readonly rpcUrl: string | null;
  readonly storage: ClientChannelStorage;
  /** Counts a deposit before it is signed. Throws Refused where there is no room for it. */
  readonly countDeposit?: ((units: bigint) => void) | undefined;
}

/** The client would cut a deposit to this many times the call's price. Our own ceiling refuses a larger deposit. */
const UNCUT = Number.MAX_SAFE_INTEGER;
/** Calls that a deposit covers where the seller names no minimum, as the stock client has it. */
const CALLS_COVERED = 5n;

/**
 * The official client of payment channels, allowed to pay in one asset on one network. Its deposits are at most the
 * ceiling, together: a larger one is refused before it is signed. With an RPC endpoint the client corrects a wrong
 * record
 * of its channel by itself. `onChain` is what is deposited into a channel, less what was paid back, and what is claimed
 * from it, in base units; it rejects without an endpoint.
 */
export function createChannelClient(terms: ChannelClientTerms) {
  const { privateKey, network, asset, maxUnits, maxDeposit, rpcUrl, storage, countDeposit } = terms;
  const account = privateKeyToAccount(privateKey);
  const signer = rpcUrl ? toClientEvmSigner(account, createPublicClient({ transport: http(rpcUrl) })) : account;
  let signed = 0n;

  function depositStrategy(context: BatchSettlementDepositStrategyContext): bigint {
    const wanted = depositOf(context);
    if (signed + wanted > maxDeposit) {
      const [before, more] = signed > 0n ? [` after ${formatUsdc(signed)}`, ' more'] : ['', ''];
      const ceiling = `the ceiling of ${formatUsdc(maxDeposit)} (--max-deposit)`;
      const text = `a deposit of ${formatUsdc(wanted)}${before} is above ${ceiling}; nothing${more} was signed`;
      throw new Refused('above-limit', text);
    }
    countDeposit?.(wanted);
    signed += wanted;
    return wanted;
  }

  const depositPolicy = { depositMultiplier: UNCUT };
  const scheme = new BatchSettlementEvmScheme(signer, { storage, depositPolicy, depositStrategy });
  const client = new x402Client()
    .register(network, scheme)
    .setSpendControls({ allowedAssets: [{ network, asset, maxAmountPerPayment: maxUnits.toString() }] });
  const onChain = async (id: `0x${string}`) => readChannelBalanceAndTotalClaimed(signer, id);
  return { client, scheme, onChain };
}

/** What the channel needs now: the seller's minimum, or five calls without one, and more where the call costs more. */
function depositOf(context: BatchSettlementDepositStrategyContext): bigint {
  const [price, missing] = [BigInt(context.requestAmount), BigInt(context.minimumDepositAmount)];
  const usual = parseAnnouncedMinDeposit(context.paymentRequirements.extra?.minDeposit, price) ?? CALLS_COVERED * price;
  return missing > usual ? missing : usual;
}

export interface ChannelTerms {
  readonly privateKey: `0x${string}`;
  /** The folder with the records of the channels. It is made where it is missing. */
  readonly directory: string;
  /** The most that this call deposits, in base units. */
  readonly maxDeposit: bigint;
  /** Where the client reads the channel; null: its record alone counts. */
  readonly rpcUrl: string | null;
}

/** Time-out of the provider's answer, in milliseconds. */
const RPC_MS = 60_000;

/**
 * Opens the buyer's record of the offer's channel, with the official client that signs for it. With `rpcUrl` the record
 * has the deposits that are on the chain. Throws when `rpcUrl` gives no answer, and when it is of another chain.
 */
export async function openChannel(
  { requirement, amountUnits }: ChannelOffer,
  { directory, ...terms }: ChannelTerms,
  countDeposit?: (units: bigint, channel: string) => void,
) {
  const network = requirement.network as `eip155:${string}`;
  if (terms.rpcUrl !== null) await checkChain(terms.rpcUrl, network);
  // The records hold signed vouchers.
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const storage = new FileClientChannelStorage({ directory });
  const { asset } = requirement;
  const made = createChannelClient({
    ...terms,
    network,
    asset,
    maxUnits: amountUnits,
    storage,
    countDeposit: (units) => countDeposit?.(units, id),
  });
  const { client, scheme, onChain } = made;
  const id = computeChannelId(scheme.buildChannelConfig(requirement), network);
  const record = await storage.get(id);
  // The client reads the chain only without a record. A deposit that was made unheard would be made again.
  const [balance, claimed] = terms.rpcUrl === null ? [0n, 0n] : await onChain(id).catch(notTold);
  // A provider may lag behind a deposit that the record has.
  if (record && balance > BigInt(record.balance ?? 0))
    await storage.set(id, { ...record, balance: balance.toString() });

  return {
    client,
    scheme,
    id,
    /** The record as it is. */
    record: () => storage.get(id),
    /** Puts a record back. */
    keep: (kept: NonNullable<typeof record>) => storage.set(id, kept),
    /** What is charged, in base units: by the record, or by the chain where there is none. */
    charged: async (): Promise<bigint> => BigInt((await storage.get(id))?.chargedCumulativeAmount ?? claimed),
    /** What the record says is deposited, less what was paid back, in base units. */
    deposited: async (): Promise<bigint> => BigInt((await storage.get(id))?.balance ?? 0),
    /**
     * Adds a deposit in base units to the record's balance, and leaves the charges as they are. With `before`, only
     * while
     * the balance is still that: the client notes no deposit where the receipt states other charges than the record.
     */
    noteDeposit: async (units: bigint, before?: bigint): Promise<void> => {
      const { balance = '0', chargedCumulativeAmount = '0', ...more } = (await storage.get(id)) ?? {};
      if (before !== undefined && BigInt(balance) !== before) return;
      await storage.set(id, { ...more, chargedCumulativeAmount, balance: (BigInt(balance) + units).toString() });
    },
    /** What the record says is left, as text. */
    left: async (): Promise<string> => {
      const known = await storage.get(id);
      return `${known?.balance === undefined ? 'unknown,' : formatUsdc(leftIn(known))} in channel ${id}`;
    },
  };
}

const notTold = (cause: unknown): never => {
  throw new Error('RPC_URL does not tell the balance of the channel; nothing was signed', { cause });
};

/** What a record says is left, in base units. */
const leftIn = ({ balance = '0', chargedCumulativeAmount = '0' }): bigint =>
  BigInt(balance) - BigInt(chargedCumulativeAmount);

/** Throws unless the endpoint is on the seller's chain. A channel of another chain would be read as empty. */
async function checkChain(rpcUrl: string, network: string): Promise<void> {
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'eth_chainId', params: [] });
  const headers = { 'content-type': 'application/json' };
  const signal = AbortSignal.timeout(RPC_MS);
  const answer = await fetch(rpcUrl, { method: 'POST', headers, body, signal })
    .then((response) => response.json() as Promise<{ result?: unknown }>)
    .catch((cause: unknown) => {
      throw new Error('RPC_URL gives no answer; nothing was signed', { cause });
    });
  const found = typeof answer.result === 'string' ? `eip155:${Number(answer.result)}` : 'no chain';
  if (found !== network) throw new Error(`RPC_URL is on ${found}, the offer on ${network}; nothing was signed`);
}

const WOULD_PAY_TWICE =
  'the seller claims charges that the voucher just signed may have paid, and gave no answer; nothing more was signed';
const OTHER_DEVICE = 'If another device has bought a call in this channel meanwhile, repeat the command';
const MAY_BE_CHARGED =
  'whether this call is charged is open. Repeat the same command, before any other call in this channel: ' +
  'the same voucher is never charged twice';
const THEN_USE_RPC = 'Then repeat the command with RPC_URL';
const PAYS_AGAIN = 'Repeating the command may pay again';
/** The scheme's reasons for a voucher that was signed from a missing or old record. */
const STALE_RECORD = /_cumulative_(?:amount_mismatch|below_claimed)\b/;

/**
 * How a payment over a channel failed. `unsigned`: nothing left this machine. `uncharged`: the seller says that it took
 * nothing, and the next voucher covers this one. `open`: it may be charged.
 */
export class ChannelFailure extends Error {
  readonly kind: 'unsigned' | 'uncharged' | 'open';
  constructor(kind: ChannelFailure['kind'], message: string, cause?: unknown) {
    super(message, { cause });
    this.kind = kind;
  }
}

/** How a voucher is counted and kept. */
export interface VoucherBook {
  /** What an earlier run has signed for this call, and had no answer to; null without one. */
  readonly kept: Readonly<Record<string, string>> | null;
  /** Counts what a voucher is good for, before it is signed. Throws where a budget has no room. */
  count(channel: string, upTo: bigint): void;
  /** Counts a deposit before it is signed. Throws Refused where there is no room, or the host has another channel. */
  countDeposit(units: bigint, channel: string): void;
  /** Keeps what presents it, before it is presented. */
  keep(headers: Readonly<Record<string, string>>): void;
}

/**
 * Pays a checked offer and returns the answer, with the receipt's transaction. The record of the channel stays on disk.
 * Throws ChannelFailure with the seller's reason. A deposit above the ceiling is refused before it is signed.
 */
export async function payByChannel(
  seller: Seller,
  offer: ChannelOffer,
  terms: ChannelTerms,
  presenting: Presenting & { readonly book: VoucherBook },
): Promise<{ readonly reply: Reply; readonly transaction: string | null }> {
  const { say, book } = presenting;
  const channel = await openChannel(offer, terms, book.countDeposit).catch((error: Error) => {
    throw new ChannelFailure(book.kept ? 'open' : 'unsigned', error.message, error.cause);
  });
  const client = new x402HTTPClient(channel.client);
  const openDeposits: string[] = [];
  const failed = failureWith(openDeposits);
  let highest = 0n;
  for (let isRetry = false; ; isRetry = true) {
    if (isRetry) say('corrected: the record of the channel was old; signing once more');
    const voucher = await signVoucher(offer, { client, channel, book, kept: isRetry ? null : book.kept }).catch(
      (cause: Error) => {
        throw isRetry ? failed('open', cause.message) : new ChannelFailure('unsigned', cause.message, cause);
      },
    );
    const { payload, headers, deposit } = voucher;
    if (voucher.upTo > highest) highest = voucher.upTo;
    if (deposit) {
      say(`deposit: ${deposit.amount} into channel ${channel.id}`);
      openDeposits.push(`whether the deposit of ${deposit.amount} is made is open until ${deposit.until}`);
    }
    const { reply } = await presentSigned(seller, { headers, deposit, openDeposits, channel }, presenting);
    const [charged, deposited] = [await channel.charged(), await channel.deposited()];
    const { recovered, receipt } = await note(client, payload, { reply, offer, rpcUrl: terms.rpcUrl }, say);
    if (recovered) {
      if (wouldPayTwice(highest, await channel.charged(), offer))
        throw failed('open', WOULD_PAY_TWICE, undefined, openDeposits.length > 0 ? PAYS_AGAIN : OTHER_DEVICE);
      if (!isRetry) continue;
    }
    if (deposit && namesTransaction(receipt)) {
      openDeposits.pop();
      await channel.noteDeposit(deposit.units, deposited);
    }
    if (!isAnswer(reply)) {
      const taken = recovered ? 0n : (await channel.charged()) - charged;
      const text = refusalText(reply, taken, terms, openDeposits);
      const kind = taken === 0n && saysUncharged(reply) ? 'uncharged' : 'open';
      throw failed(kind, text, undefined, taken > 0n ? PAYS_AGAIN : undefined);
    }
    say(`paid:    ${paidText(offer, receipt, deposit !== null)}`);
    say(`left:    ${await channel.left()}`);
    for (const text of openDeposits) say(`open:    ${text}. Use RPC_URL for the next call`);
    return { reply, transaction: namesTransaction(receipt) ? receipt.transaction : null };
  }
}

interface Signing {
  readonly client: x402HTTPClient;
  readonly channel: Awaited<ReturnType<typeof openChannel>>;
  readonly book: VoucherBook;
  readonly kept: Readonly<Record<string, string>> | null;
}

/** Counts, signs and keeps a voucher, or takes the one that was kept. */
async function signVoucher(offer: ChannelOffer, { client, channel, book, kept }: Signing) {
  if (kept) return { ...voucherIn(decodePaymentSignatureHeader(kept['PAYMENT-SIGNATURE'] ?? '')), headers: kept };
  const upTo = (await channel.charged()) + offer.amountUnits;
  book.count(channel.id, upTo);
  // Pays the offer that was checked. A new request could bring another price.
  const voucher = voucherIn(await signOffer(client, offer));
  // The client may know of charges that the record had not. Nothing has left this machine yet.
  if (voucher.upTo > upTo) book.count(channel.id, voucher.upTo);
  const headers = client.encodePaymentSignatureHeader(voucher.payload);
  book.keep(headers);
  return { ...voucher, headers };
}

function voucherIn(payload: PaymentPayload) {
  const { voucher } = payload.payload as { voucher: { maxClaimableAmount: string } };
  return { payload, upTo: BigInt(voucher.maxClaimableAmount), deposit: depositIn(payload) };
}

interface Presentation {
  readonly headers: Readonly<Record<string, string>>;
  /** The deposit that goes with the voucher. Null without one. */
  readonly deposit: ReturnType<typeof depositIn>;
  /**
   * What the buyer is told of each deposit that may be made, the last one of this deposit. It is removed once a receipt
   * says that the deposit is made.
   */
  readonly openDeposits: string[];
  readonly channel: Awaited<ReturnType<typeof openChannel>>;
}

/**
 * Presents a voucher. Returns its answer, or a refusal that is final. Throws while it is open whether the voucher is
 * charged. The record then stays as it was, so the next call presents the same voucher.
 */
async function presentSigned(
  seller: Seller,
  { headers, deposit, openDeposits, channel }: Presentation,
  presenting: Presenting,
): Promise<{ readonly reply: Reply }> {
  const failed = failureWith(openDeposits);
  const maybeCharged = deposit ? '' : `; ${MAY_BE_CHARGED}`;
  /** Notes a deposit that is made by the receipt of an answer which was cut off. Returns what that answer did. */
  const noteCut = async (cut: Headers): Promise<string> => {
    const receipt = settledIn(cut);
    if (!deposit || !namesTransaction(receipt)) return maybeCharged;
    openDeposits.pop();
    await channel.noteDeposit(deposit.units);
    return `; by its receipt the deposit is made, transaction ${printable(receipt.transaction)}; ${MAY_BE_CHARGED}`;
  };
  const { reply, cutOff } = await present(seller, headers, presenting).catch(async (cause: unknown) => {
    if (cause instanceof CutOff) throw failed('open', `${cause.message}${await noteCut(cause.headers)}`);
    throw failed('open', `no answer${maybeCharged}`, cause);
  });
  if (isAnswer(reply) || !(cutOff || isBusy(reply.status))) return { reply };
  const more = cutOff ? `; an earlier answer was cut off${await noteCut(cutOff)}` : maybeCharged;
  throw failed('open', `status ${reply.status}: ${reasonOf(reply)}${more}`);
}

/**
 * Lets the client note what the answer says of the channel that was paid from. Without this, a 402 could name another
 * seller's channel, and the client would correct the record of that one. A receipt that the client refuses must not
 * cost
 * the buyer the answer. A receipt of a refusal counts only where nothing was taken, and where an earlier answer was
 * bought
 * and is gone: with 410, and with the reason of a stale voucher for a buyer who cannot read the chain. Otherwise the
 * next
 * call would sign for a further one.
 */
async function note(
  client: x402HTTPClient,
  payload: PaymentPayload,
  { reply, offer, rpcUrl }: { readonly reply: Reply; readonly offer: ChannelOffer; readonly rpcUrl: string | null },
  say: (line: string) => void,
) {
  const { headers, status } = reply;
  try {
    const get = (name: string): string | null => {
      const text = headers.get(name);
      if (text === null) return null;
      if (name.toLowerCase() === 'payment-required') return ofChannel(text, offer);
      const isStale = rpcUrl === null && STALE_RECORD.test(challengeErrorOf(headers) ?? '');
      const isGone = status === 410 || (status === 402 && isStale);
      const counts = isAnswer(reply) || isGone || settledIn(headers)?.success === false;
      return name.toLowerCase() === 'payment-response' && !counts ? null : text;
    };
    const { recovered, settleResponse } = await client.processPaymentResult(payload, get, status);
    return { recovered, receipt: settleResponse ?? null };
  } catch (error) {
    say(`warning: the receipt was refused, and the channel's record is as before: ${printable(String(error))}`);
    return { recovered: false, receipt: null };
  }
}

/**
 * Whether another voucher could pay the seller more than the highest that this command has signed (`max`), and the
 * corrected charges may come from that one: `charged <= max < charged + price`. Below that, another one covers no more
 * than the first. Above it, another device has signed.
 */
function wouldPayTwice(max: bigint, charged: bigint, { amountUnits: price }: ChannelOffer): boolean {
  return charged <= max && max < charged + price;
}

/**
 * Makes the errors of a payment. Each tells of the signed deposits that may be made: whatever the seller answers, it
 * holds them until they expire.
 */
function failureWith(openDeposits: readonly string[]) {
  return (
    kind: ChannelFailure['kind'],
    text: string,
    cause?: unknown,
    advice = openDeposits.length > 0 ? THEN_USE_RPC : '',
  ) => new ChannelFailure(kind, `${[text, ...openDeposits].join('; ')}${advice && `. ${advice}`}`, cause);
}

/** Why a voucher got no answer, and what its receipt says was taken all the same, in base units. */
function refusalText(reply: Reply, taken: bigint, terms: ChannelTerms, openDeposits: readonly string[]): string {
  const reason = reasonOf(reply);
  const told = taken > 0n ? `; by its receipt ${formatUsdc(taken)} is charged` : '';
  return `status ${reply.status}: ${reason}${told}${adviceOn(reason, terms, openDeposits)}`;
}

/** What a buyer can do about a record that is missing or old, where the client could read the channel nowhere. */
function adviceOn(reason: string, { rpcUrl }: ChannelTerms, openDeposits: readonly string[]): string {
  // With a second deposit the buyer would have two at the seller.
  if (rpcUrl !== null || openDeposits.length > 0 || !STALE_RECORD.test(reason)) return '';
  return (
    '; the record of this channel is missing or old: ' +
    'repeat the command with RPC_URL, and it is corrected from the chain'
  );
}

function paidText({ amountUnits }: ChannelOffer, receipt: SettleResponse | null, hasDeposit: boolean): string {
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
function depositIn({ payload }: PaymentPayload) {
  const { deposit } = payload as { deposit?: SignedDeposit };
  if (!deposit) return null;
  const until = `${deposit.authorization.erc3009Authorization.validBefore} (Unix seconds)`;
  const units = BigInt(deposit.amount);
  return { units, amount: formatUsdc(units), until };
}

/** In milliseconds: a refund takes a few blocks. */
const REFUND_WITHIN_MS = 60_000;

const MAY_BE_UNDER_WAY = '; ask again later, the refund may be under way';

/**
 * Asks the seller to pay what is left in the channel back to the payer. Throws with the seller's reason. The record
 * keeps
 * its charges, because the next voucher must go on from them. By a receipt that names all that was left, nothing is
 * left.
 * With RPC_URL the next command reads what the chain says.
 */
export async function refundChannel(
  url: URL,
  offer: ChannelOffer,
  terms: ChannelTerms,
  say: (line: string) => void,
): Promise<void> {
  const channel = await openChannel(offer, terms);
  let record = await channel.record();
  say(`left:    ${await channel.left()}`);
  const answers: Reply[] = [];
  const watched: typeof fetch = async (input, init) => {
    const isSigned = new Headers(init?.headers).has('payment-signature');
    // The seller may have corrected the record, by a voucher of another device.
    if (isSigned) record = await channel.record();
    const answered = fetch(input, { ...init, redirect: 'manual', signal: AbortSignal.timeout(REFUND_WITHIN_MS) });
    const answer = await answered.catch((cause: unknown) => {
      throw isSigned ? new Error(`no answer${MAY_BE_UNDER_WAY}`, { cause }) : cause;
    });
    const body = Buffer.from(await answer.arrayBuffer().catch(() => new ArrayBuffer(0)));
    const { status, headers } = answer;
    answers.push({ status, headers, body });
    return withOwnEntries({ status, headers, body }, offer);
  };
  const receipt = await channel.scheme.refund(url.href, { fetch: watched }).catch((cause: Error) => {
    const last = answers.at(-1);
    // A refusal has a reason that the client understands. For any other it says only that the receipt is missing.
    // The client's message may repeat the seller's words, so it is made printable.
    if (!last || isAnswer(last) || last.status === 402) throw new Error(printable(cause.message));
    const isOpen = isBusy(last.status) ? MAY_BE_UNDER_WAY : '';
    throw new Error(`status ${last.status}: ${reasonOf(last, null)}${isOpen}`, { cause });
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
 * The answer with those entries of its 402 alone that are of the offer's channel. Otherwise the client would sign for
 * the
 * channel that the seller names, and correct or delete the record of that one. A refusal's receipt counts only where
 * nothing was refunded: the client would delete the record of this channel.
 */
function withOwnEntries({ status, headers: came, body }: Reply, offer: ChannelOffer): Response {
  const headers = new Headers(came);
  if (status >= 200 && status <= 299) return new Response(new Uint8Array(body), { status, headers });
  if (settledIn(headers)?.success !== false) headers.delete('payment-response');
  const demand = status === 402 ? headers.get('payment-required') : null;
  const own = demand && ofChannel(demand, offer);
  if (demand !== null && !own)
    throw new Error('the seller asks for another channel than the one of its offer; nothing was signed for that');
  if (own) headers.set('payment-required', own);
  return new Response(new Uint8Array(body), { status, headers });
}

/** The receipt's amount in base units; null where it names none. */
const amountOf = ({ amount }: SettleResponse): bigint | null =>
  /^\d{1,30}$/.test(amount ?? '') ? BigInt(amount ?? '') : null;
