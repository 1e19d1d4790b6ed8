import { hash } from 'node:crypto';
import type { SettleResponse } from '@x402/core/types';
import { Unavailable } from '../../errors.ts';
import { bytesToHex } from '../../lib/hex.ts';
import { boundedMap } from '../../lib/limits/count.ts';
import { keccak256 } from '../../lib/secp256k1.ts';
import type { Channel, ChannelStore, VoucherSale } from '../../store/ports/channels.ts';
import type { ChannelAfter, Payment } from '../../store/ports/payments.ts';
import type { Sold } from '../call.ts';
import { identifierConflict, isSameRequest } from '../known-payment.ts';
import { hashClient } from '../ledger.ts';
import type { ProtocolName } from '../protocol.ts';
import { AnswerGone, soldOf } from '../receipt.ts';
import { asChargedUnknown, chargedUnknown, checkable, PaymentRefused, settlementUnknown } from '../refusal.ts';
import { admit, type SaleContext } from '../sale.ts';
import { word } from '../usdc/token.ts';
import { type ChannelContext, type ChannelMessage, channelReceipt, correctionOf, isSaleOf } from './channel.ts';
import { type ClaimBounds, type ClaimRisk, overdueBefore } from './claim-health.ts';
import { reason, SETTLEMENT_BYTES, signerOf } from './scheme.ts';
import type { TurnEnd } from './turns.ts';

// The sale of a call for a voucher. The charge, the voucher and the answer are one write; the bytes leave after it.
// 1. A voucher that has bought this very request gets that answer, or 410 when it is lost undelivered.
// 2. Limits, what stops all sales, a ceiling below what is claimed and the payment identifier are checked. The request
//    waits for its turn.
// 3. The channel is read again, unless it was just read. A voucher that does not fit is refused with the new charges.
//    While claims cannot be sent, less is sold. An open deposit or refund refuses it too.
// 4. The endpoint runs. A failure charges nothing, and the same voucher buys the next answer.
// 5. The write raises the charges to the voucher's ceiling. Then the answer leaves.

/** What every sale for a voucher shares. */
export interface VoucherContext extends ChannelContext {
  readonly risk: ClaimRisk;
  readonly bounds: ClaimBounds;
  readonly corrections: Corrections;
}

/** A voucher that is presented for a call. */
interface VoucherCall extends ChannelMessage {
  readonly requestHash: Uint8Array;
  readonly protocol: ProtocolName;
}

/** 1. With what was known of its channel when it came. */
interface ArrivedVoucher extends VoucherCall {
  /** Its ceiling. */
  readonly max: bigint;
  /** Its number among the vouchers that came, and the turns that had ended by then. */
  readonly arrival: number;
  readonly endedTurns: number;
  /** The ledger's row. */
  readonly channel: Channel | null;
}

// Only a `new` row is used as it was read on arrival. An older one could miss a sale: the endpoint would run in vain.
/**
 * How old that row is. `aged`: the sale has waited since for another read. `overtaken`: the voucher may have been
 * charged since, so errors say `charged: "unknown"`.
 */
type RowAge = 'new' | 'aged' | 'overtaken';

/** Throws PaymentRefused (402), AppErrors. No money was taken unless `charged` says otherwise. */
export async function sellForVoucher(context: VoucherContext, presented: VoucherCall): Promise<Sold> {
  const voucher = await readChannel(context, presented);
  const { channel, max } = voucher;
  // A voucher over more than the charges has bought nothing.
  if (!channel || max > channel.charged) return sellInOrder(context, voucher);
  // Any other may have been charged, whatever fails now. A request that needs no turn does not wait for one.
  return chargedUnknown(async () => (await redelivered(context, voucher)) ?? (await sellInOrder(context, voucher)));
}

async function readChannel(
  { store, turns, sales, corrections }: VoucherContext,
  presented: VoucherCall,
): Promise<ArrivedVoucher> {
  const { channelId, payload } = presented;
  const { maxClaimableAmount: max } = payload.voucher;
  const [arrival, endedTurns] = [corrections.arrive(), turns.endedTurns()];
  const channel = await sales.soon(store.get(channelId));
  return { ...presented, max, arrival, endedTurns, channel };
}

/** Null without a sale or redelivery left. Throws 410 (`answer_gone`) if undelivered: a refusal would cost twice. */
async function redelivered({ store, sales }: VoucherContext, voucher: ArrivedVoucher): Promise<Sold | null> {
  const sale = await store.findSale(voucher.channelId, voucher.max);
  if (sale?.state !== 'settled' || !isSameRequest(sale, voucher)) return null;
  if (!isSaleOf(sale, voucher)) return null;
  const body = await sales.ledger.redeliver(sale.id);
  if (body) return soldOf(sales, channelReceipt, sale, body, sale.price ?? 0n);
  if (sale.deliveredAt === null) throw new AnswerGone(sale, channelReceipt(sale));
  return null;
}

async function sellInOrder(context: VoucherContext, voucher: ArrivedVoucher): Promise<Sold> {
  const { turns } = context;
  const { channelId, channel, max, call, requestHash } = voucher;
  const key = bytesToHex(channelId);
  const check = (): Promise<void> => checkBeforeTurn(context, voucher);
  // A sale of the voucher may be under way, or may have ended since the channel was read.
  await (ageOf(context, voucher) === 'overtaken' || turns.isBusy(key) ? chargedUnknown(check) : check());
  const request = Buffer.from(requestHash).toString('latin1');
  const asking = { chargedBefore: max - call.price, charged: channel?.charged ?? null, request };
  const sold = await turns.take(key, asking, call.signal, (hasWaited) =>
    sellInTurn(context, voucher, hasWaited ? 'overtaken' : ageOf(context, voucher)),
  );
  if (sold === null) throw new PaymentRefused(reason('channel_busy'));
  if (sold instanceof PaymentRefused) throw sold;
  return sold;
}

/** A row that the ledger did not have, or since whose read a turn has ended in this process, counts as overtaken. */
function ageOf({ turns }: VoucherContext, { channel, endedTurns, identifier, max }: ArrivedVoucher): RowAge {
  if (!channel || turns.endedTurns() !== endedTurns) return 'overtaken';
  // The sale has waited for a look at the identifier, or at what the voucher has bought.
  return identifier || max <= channel.charged ? 'aged' : 'new';
}

/** 2. Writes nothing. Throws PaymentRefused, TooMany, Unavailable, 409. */
async function checkBeforeTurn({ sales, status, store }: VoucherContext, voucher: ArrivedVoucher): Promise<void> {
  const { call, payload, channel, channelId, max } = voucher;
  admit(sales, signerOf(payload), call);
  const why = status.stopsSales?.() ?? null;
  if (why !== null) throw new Unavailable('settlement_unavailable', `nothing is sold over channels now: ${why}`);
  // A third party may present a claimed voucher. It never takes a turn.
  if (channel && max <= channel.state.totalClaimed) {
    const sale = await sales.soon(store.findSale(channelId, max));
    throw new StaleVoucher(channel, { code: BELOW_CLAIMED, isBuyer: sale === null || isSaleOf(sale, voucher) });
  }
  await checkIdentifier(sales, voucher);
}

/** Throws 409 when another payment holds the identifier, or this voucher for another request. */
async function checkIdentifier({ ledger, soon }: SaleContext, voucher: VoucherCall): Promise<void> {
  const { identifier } = voucher;
  const holder = identifier && (await soon(ledger.findByIdentifier(identifier.hash)));
  if (!holder) return;
  const isSameVoucher = Buffer.compare(holder.nonce, nonceOf(voucher)) === 0;
  if (isSameVoucher && isSameRequest(holder, voucher)) return;
  // Held by this voucher for another request: it is charged.
  throw identifierConflict(isSameVoucher);
}

/** A stale voucher is an outcome of the turn: the channel then waits for the corrected one. */
async function sellInTurn(
  context: VoucherContext,
  voucher: ArrivedVoucher,
  age: RowAge,
): Promise<TurnEnd<Sold | PaymentRefused>> {
  try {
    return { value: await serve(context, voucher, age), charged: voucher.max, isCorrected: false };
  } catch (error) {
    if (!(error instanceof StaleVoucher)) return fail(context, voucher, error);
    const value = await chargedUnknown(() => context.corrections.answer(voucher, error));
    return { value, charged: error.charged, isCorrected: true };
  }
}

/** Another process may have charged the voucher. Unless the ledger denies it, the error says `charged: "unknown"`. */
async function fail(context: VoucherContext, { channelId, max }: ArrivedVoucher, error: unknown): Promise<never> {
  if (error instanceof PaymentRefused) throw error;
  const now = await context.sales.soon(context.store.get(channelId)).catch(() => null);
  throw now && now.charged < max ? error : asChargedUnknown(error);
}

/** How often a sale may lose its charge to another process. */
const MOST_TRIES = 3;

async function serve(context: VoucherContext, voucher: ArrivedVoucher, ageInTurn: RowAge): Promise<Sold> {
  const { call } = voucher;
  let age = ageInTurn;
  let body: Uint8Array | null = null;
  for (let tries = 0; tries < MOST_TRIES; tries++) {
    const again = await judge(context, voucher, age);
    if (again) return again;
    // 4.
    body ??= await call.run('sale', call.signal);
    const sold = await charge(context, voucher, body);
    if (sold) return sold;
    // Another process has charged the channel.
    age = 'overtaken';
  }
  throw new PaymentRefused(reason('channel_busy'));
}

/** 3. Null when it fits; else its earlier answer. Throws PaymentRefused; Unavailable while charges are unclaimable. */
async function judge(context: VoucherContext, voucher: ArrivedVoucher, age: RowAge): Promise<Sold | null> {
  const look = () => checkable(() => fitOf(context, voucher, age === 'new' ? voucher.channel : null));
  const fitting = await (age === 'overtaken' ? chargedUnknown(look) : look());
  if ('again' in fitting) return fitting.again;
  await checkClaims(context, fitting.channel, voucher.call.price);
  if (await context.store.findOpen(voucher.channelId)) throw new PaymentRefused(reason('channel_busy'));
  return null;
}

async function fitOf(
  context: VoucherContext,
  voucher: ArrivedVoucher,
  known: Channel | null,
): Promise<{ channel: Channel } | { again: Sold }> {
  const { book } = context;
  const { channelId, payload, max, call, asker } = voucher;
  const covered = { max, price: call.price, deposit: 0n };
  let channel = await (known ? book.fresh(known, asker) : book.open(channelId, payload.config, asker));
  let fault = faultOf(channel, covered);
  const again = fault && (await redelivered(context, voucher));
  if (again) return { again };
  if (fault?.mayBeOld) {
    channel = await book.reread(channel, asker);
    fault = faultOf(channel, covered);
  }
  if (fault) throw fault.refusal;
  return { channel };
}

/** A voucher's ceiling, the price of the call, and the deposit that comes with it, in base units. */
export interface Covered {
  readonly max: bigint;
  readonly price: bigint;
  readonly deposit: bigint;
}

/** The first fault; null without one. `mayBeOld`: a new read of the chain may mend it. */
export function faultOf(
  channel: Channel,
  { max, price, deposit }: Covered,
): { refusal: PaymentRefused; mayBeOld: boolean } | null {
  const { charged, state } = channel;
  if (max <= state.totalClaimed)
    return { refusal: new StaleVoucher(channel, { code: BELOW_CLAIMED }), mayBeOld: false };
  if (max !== charged + price) return { refusal: new StaleVoucher(channel), mayBeOld: false };
  const balance = state.balance + deposit;
  if (balance === 0n) return { refusal: new PaymentRefused(reason('channel_not_found')), mayBeOld: true };
  if (max <= balance - state.withdrawAmount) return null;
  if (max <= balance) return { refusal: new PaymentRefused(reason('cumulative_exceeds_balance')), mayBeOld: true };
  // A client that hears this reads the chain, so we do first. It is counted: else every voucher could cost a read.
  return { refusal: new StaleVoucher(channel, { isForgiven: false }), mayBeOld: true };
}

/** Throws Unavailable while claims cannot be sent, and this channel owes for too long or all together too much. */
async function checkClaims({ status, risk, bounds, sales }: VoucherContext, channel: Channel, price: bigint) {
  const unavailable = status.cannotSend();
  if (unavailable === null) return risk.calm();
  await risk.look();
  checkClaimable(channel, { unavailable, isTooMuch: risk.isTooMuch(price), bounds, nowMs: sales.clock.nowMs() });
}

interface ClaimTrouble {
  readonly unavailable: string;
  /** The charges of all channels pass a bound (`claim-health.ts`). */
  readonly isTooMuch: boolean;
  readonly bounds: ClaimBounds;
  readonly nowMs: number;
}

/** Throws Unavailable (`settlement_unavailable`) where the oldest charge is overdue or too much is at risk. */
export function checkClaimable({ unclaimedSince }: Channel, trouble: ClaimTrouble): void {
  const { unavailable, isTooMuch, bounds, nowMs } = trouble;
  const isOverdue = unclaimedSince !== null && unclaimedSince < overdueBefore(bounds, nowMs);
  if (!isOverdue && !isTooMuch) return;
  const whose = isOverdue ? 'this channel' : 'payment channels';
  throw new Unavailable('settlement_unavailable', `charges of ${whose} cannot be claimed now: ${unavailable}`);
}

/** 5. Null when the voucher no longer fits the channel. Throws `settlement_unknown` when the store may have charged. */
async function charge({ sales, store, risk }: VoucherContext, voucher: VoucherCall, body: Uint8Array) {
  const { ledger, network } = sales;
  const { price } = voucher.call;
  const signed = saleOf(voucher, network);
  const kept = ledger.keepPaid(body, async (row, keepUntil) => {
    const sale = { ...signed, ...row };
    return chargedSale(sale, await store.charge(sale, body, keepUntil));
  });
  const sale = await kept.catch((error: unknown) => {
    // A store whose connection broke may have stored the charge. The same voucher then gets the answer.
    throw error instanceof Unavailable ? error : settlementUnknown(error);
  });
  if (!sale) return null;
  risk.note(price);
  return soldOf(sales, channelReceipt, sale, body, price);
}

/** The nonce in the ledger's key. No two vouchers of one payer share it. */
function nonceOf({ channelId, payload }: VoucherCall): Uint8Array {
  return keccak256(Buffer.concat([channelId, word(payload.voucher.maxClaimableAmount)]));
}

function saleOf(voucher: VoucherCall, network: string): Omit<VoucherSale, 'id' | 'bootId' | 'reservedAt'> {
  const { channelId, payload, call, requestHash, identifier, protocol } = voucher;
  const { config, voucher: signed } = payload;
  const { price, route, identity } = call;
  const { maxClaimableAmount: max, signature } = signed;
  const nonce = nonceOf(voucher);
  const authorizationHash = hash('sha256', Buffer.concat([SETTLEMENT_BYTES, nonce, signature]), 'buffer');
  return {
    network,
    contract: SETTLEMENT_BYTES,
    payer: config.payer,
    nonce,
    authorizationHash,
    amount: price,
    price,
    payTo: config.receiver,
    validAfter: 0n,
    validBefore: 0n,
    requestHash,
    identifierHash: identifier?.hash ?? null,
    clientHash: hashClient(nonce, identity),
    route,
    protocol,
    channel: { channelId, max, signature },
  };
}

/** The row of a voucher's sale; null where it was not charged. A read would cost a tenth of the sale's ledger time. */
export function chargedSale(sale: VoucherSale, after: ChannelAfter | null): Payment | null {
  if (!after) return null;
  const { route, ...row } = sale;
  const { channelId, max } = sale.channel;
  const unsent = { signature: null, payerHasCode: null, checkedBlock: null, transaction: null, block: null };
  const settled = { state: 'settled', charged: sale.price, endedAt: sale.reservedAt, reason: null } as const;
  return {
    ...row,
    ...unsent,
    ...settled,
    deliveries: 0,
    deliveredAt: null,
    calldata: null,
    channel: { channelId, max, after },
  };
}

/** Remembered corrections, about 2 MB. */
const MOST_CORRECTED = 10_000;

/** What stale vouchers are answered with. */
export function createCorrections(store: Pick<ChannelStore, 'get' | 'findSale'>) {
  // The stale voucher that each client was last corrected for in a channel, and the requests that had arrived by then.
  const correctedFor = boundedMap<string, { max: bigint; arrivals: number }>(MOST_CORRECTED);
  let arrivals = 0;

  return {
    arrive: (): number => ++arrivals,
    /**
     * A client that repeats a corrected voucher cannot read the chain: a receipt tells it the charges. The first answer
     * has none, or a client that can read would not try again. Requests made at once are no repetitions.
     */
    answer: async (
      voucher: Pick<ArrivedVoucher, 'channelId' | 'max' | 'arrival' | 'call' | 'identifier'>,
      stale: StaleVoucher,
    ): Promise<PaymentRefused> => {
      const { channelId, max, arrival, call } = voucher;
      // A stranger who presents a published voucher must not make the payer's first answer a repeated one.
      const key = `${bytesToHex(channelId)} ${call.client}`;
      const known = correctedFor.peek(key);
      const isRepeated = known?.max === max && arrival > known.arrivals;
      correctedFor.set(key, { max, arrivals });
      const missed = isRepeated ? await store.findSale(channelId, max) : null;
      const channel = missed?.state === 'settled' ? await store.get(channelId) : null;
      if (!missed || !channel) return stale;
      const isBuyer = isSaleOf(missed, voucher);
      return new StaleVoucher(channel, { code: stale.code, isBuyer, settlement: channelReceipt(missed) });
    },
  };
}

type Corrections = ReturnType<typeof createCorrections>;

/** The scheme's reason for a voucher over no more than what is claimed. */
const BELOW_CLAIMED = 'cumulative_below_claimed';

interface StaleDetail {
  readonly code?: string;
  /** The receipt of a sale that the client does not know of. With it, the client does not try again by itself. */
  readonly settlement?: SettleResponse;
  /** It has bought with this voucher, or nobody has. Of a claimed one, strangers learn no charges and last voucher. */
  readonly isBuyer?: boolean;
  /** The refusal counts as no failure. By default: where the channel has bought something. */
  readonly isForgiven?: boolean;
}

/** 402: signed on top of other charges than the channel's. The client learns which voucher to sign. */
export class StaleVoucher extends PaymentRefused {
  readonly charged: bigint;
  readonly code: string;
  constructor(channel: Channel, more: StaleDetail = {}) {
    const { code = 'cumulative_amount_mismatch', settlement = null, isForgiven = channel.charged > 0n } = more;
    const isPublic = code === BELOW_CLAIMED && !more.isBuyer;
    super(reason(code), { settlement, correction: correctionOf(channel, isForgiven, isPublic) });
    this.charged = channel.charged;
    this.code = code;
  }
}
