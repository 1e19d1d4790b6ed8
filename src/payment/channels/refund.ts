import { TooMany, Unavailable } from '../../errors.ts';
import { type Clock, createIds, DAY_MS } from '../../lib/clock.ts';
import { bytesToHex } from '../../lib/hex.ts';
import {
  clientTakes,
  createMinuteWindows,
  MAX_CLIENTS,
  openClientWindows,
  type ReadableWindows,
  type Take,
  takeAll,
} from '../../lib/limits/count.ts';
import type { Channel, ChannelOperation, ChannelStore, RefundTerms } from '../../store/ports/channels.ts';
import type { Sold } from '../call.ts';
import { orSettlementUnknown, PaymentRefused, settlementUnknown } from '../refusal.ts';
import type { SettlerStatus } from '../settler.ts';
import { claimCalldata, multicallCalldata, refundCalldata } from './calldata.ts';
import { type ChannelBook, type ChannelMessage, isSaleOf, refundReceipt } from './channel.ts';
import { type ChannelPayload, reason, type Scheme } from './scheme.ts';
import type { Turns } from './turns.ts';
import { StaleVoucher } from './voucher-sale.ts';

// A refund: what a channel still holds goes back to its payer, on request, for up to 0.13M gas of ours. Any third party
// can ask for one; the payer can withdraw without us. Hence the limits.
// 1. While the relayer cannot send, nothing is read. Else a voucher that is not too old waits for its turn.
// 2. The voucher is the channel's last one, the channel has bought something, and the day's limits allow it.
// 3. At most the balance less the charges goes back. Unclaimed charges are claimed in the same transaction.
// 4. The operation is stored. While it is open, the channel takes no voucher and no deposit, and the buyer waits.

const PAID = 'the refund is paid; its channel cannot be read now';

/** Milliseconds between two looks at the operation. */
const POLL_MS = 100;

interface RefundOptions {
  store: Pick<ChannelStore, 'begin' | 'operation' | 'lastRefund' | 'findSale' | 'get'>;
  book: ChannelBook;
  turns: Turns;
  status: Pick<SettlerStatus, 'cannotSend'>;
  scheme: Scheme;
  /** Signs a 32-byte digest as the receiver's authorizer, in 65 bytes. */
  sign(digest: Uint8Array): Uint8Array;
  /** Called for a stored operation, so that the process that settles may begin at once. */
  onBegun(): void;
  network: string;
  /** Milliseconds that the buyer's connection is held for the end. */
  waitMs: number;
  clock: Clock;
}

export function createRefund(options: RefundOptions) {
  const { store, book, turns, status, onBegun, network, clock } = options;
  const nextId = createIds(clock);
  const limits = createRefundLimits(clock);

  /** Checks the ledger's own rows and counts the refund before anything is read. Returns what takes the count back. */
  async function admit(channel: Channel, refund: ChannelMessage): Promise<() => void> {
    const { id, charged } = channel;
    const { payload, call } = refund;
    if (payload.voucher.maxClaimableAmount !== charged) throw new StaleVoucher(channel);
    checkBought(channel);
    checkPause(channel, askedIn(payload), await store.lastRefund(id), clock.nowMs());
    const sale = await store.findSale(id, charged);
    const isBuyer = sale !== null && isSaleOf(sale, refund);
    // By the key that signs for the channel: any account can fund a channel in another payer's name.
    return limits.take({ signer: bytesToHex(channel.payerAuthorizer), client: call.client, isBuyer });
  }

  async function begin(refund: ChannelMessage): Promise<string> {
    const { channelId, payload, asker } = refund;
    const known = await book.open(channelId, payload.config, asker);
    const takeBack = await admit(known, refund);
    const id = nextId();
    let isTried = false;
    try {
      const channel = await book.reread(known, asker);
      if (payload.voucher.maxClaimableAmount !== channel.charged) throw new StaleVoucher(channel);
      const amount = amountOf(channel, askedIn(payload));
      const operation = { id, network, kind: 'refund' as const, channelId, amount, createdAt: clock.nowMs() };
      const calldata = callOf(options, channel, amount);
      isTried = true;
      const hasBegun = await store.begin({ ...operation, calldata }, refundTerms(channel, operation.createdAt));
      isTried = false;
      if (!hasBegun) throw new PaymentRefused(reason('channel_busy'));
      onBegun();
      return id;
    } catch (error) {
      // A store that does not answer may have begun the refund. Then it is sent, and it counts.
      if (!isTried || (await hasNotBegun(store, id))) takeBack();
      throw isTried ? settlementUnknown(error) : error;
    }
  }

  return async (refund: ChannelMessage): Promise<Sold> => {
    const { channelId, payload, call } = refund;
    const shortage = status.cannotSend();
    if (shortage) throw new Unavailable('settlement_unavailable', `refunds cannot be sent now: ${shortage}`);
    const ceiling = payload.voucher.maxClaimableAmount;
    const known = await store.get(channelId);
    // A third party may present an old voucher. It never takes a turn.
    if (known && ceiling < known.charged) throw new StaleVoucher(known);
    const begun = await turns.take(
      bytesToHex(channelId),
      { chargedBefore: ceiling, request: 'refund', charged: known?.charged ?? null },
      call.signal,
      async () => {
        const id = await begin(refund);
        return { value: id, charged: ceiling, isCorrected: false };
      },
    );
    if (begun === null) throw new PaymentRefused(reason('channel_busy'));
    const operation = await orSettlementUnknown(() => ended(options, begun));
    if (!operation) throw settlementUnknown();
    return deliver(store, channelId, operation);
  };
}

/** Whether the ledger answers that it lacks the operation. */
const hasNotBegun = (store: Pick<RefundOptions['store'], 'operation'>, id: string): Promise<boolean> =>
  store.operation(id).then(
    (operation) => operation === null,
    () => false,
  );

async function deliver(
  store: Pick<RefundOptions['store'], 'get'>,
  channelId: Uint8Array,
  { state, transaction, amount, endedAt }: ChannelOperation,
): Promise<Sold> {
  if (state === 'failed' || !transaction) throw new PaymentRefused(reason('refund_transaction_failed'));
  const channel = await orSettlementUnknown(() => store.get(channelId));
  if (!channel) throw new Unavailable('ledger_unavailable', PAID, 5, { charged: 'unknown' });
  return { body: Buffer.from('{}'), receipt: refundReceipt(channel, transaction, amount), at: endedAt };
}

/** Null where the end takes longer than `waitMs`. */
async function ended({ store, waitMs, clock }: RefundOptions, id: string): Promise<ChannelOperation | null> {
  for (const untilMs = clock.nowMs() + waitMs; clock.nowMs() < untilMs; await clock.sleep(POLL_MS)) {
    const operation = await store.operation(id);
    if (operation && operation.state !== 'open') return operation;
  }
  return null;
}

/** In base units; null for all that is left. */
const askedIn = (payload: ChannelPayload): bigint | null => (payload.kind === 'refund' ? payload.amount : null);

/** Claims in the same call what is charged and not claimed yet. */
function callOf({ scheme, sign }: RefundOptions, channel: Channel, amount: bigint): Uint8Array {
  const { id, charged, signature, state } = channel;
  const refund = refundCalldata(
    channel,
    amount,
    state.refundNonce,
    sign(scheme.refundDigest(id, state.refundNonce, amount)),
  );
  if (charged === state.totalClaimed || !signature) return refund;
  const entry = { channelId: id, maxClaimableAmount: charged, totalClaimed: charged };
  const row = { config: channel, maxClaimableAmount: charged, signature, totalClaimed: charged };
  return multicallCalldata([claimCalldata([row], sign(scheme.claimDigest([entry]))), refund]);
}

/** Milliseconds between two refunds of one channel. */
const PAUSE_MS = 600_000;
/** A day's refunds in one process. `thirdParties`: for others than the last buyer, who could use up all of `all`. */
const A_DAY = { signer: 3, client: 20, all: 100, thirdParties: { signer: 1, client: 3, all: 25 } };
/** Least refund in base units: 0.1 USDC for a part, 0.01 USDC for a rest. Its gas is 0.003 USDC at 20 gwei. */
const LEAST = { part: 100_000n, all: 10_000n };
const ALL = 'all';

/** Throws PaymentRefused (`refund_no_balance`) without a sale: our gas is for buyers. The payer can withdraw alone. */
export function checkBought({ charged }: Pick<Channel, 'charged'>): void {
  if (charged === 0n) throw new PaymentRefused(reason('refund_no_balance'));
}

/** In base units; `asked` null: all. Throws PaymentRefused (`refund_no_balance`, `refund_amount_invalid`). */
export function amountOf({ state, charged }: Pick<Channel, 'state' | 'charged'>, asked: bigint | null): bigint {
  const left = state.balance - charged;
  if (left < LEAST.all) throw new PaymentRefused(reason('refund_no_balance'));
  if (asked === null || asked === left) return left;
  if (asked < LEAST.part || asked > left) throw new PaymentRefused(reason('refund_amount_invalid'));
  return asked;
}

/** TooMany (429, `refund_too_soon`) within PAUSE_MS; PaymentRefused if nothing is left: a repetition must hear that. */
export function checkPause(
  channel: Pick<Channel, 'state' | 'charged'>,
  asked: bigint | null,
  last: ChannelOperation | null,
  nowMs: number,
): void {
  const leftMs = last?.endedAt ? last.endedAt + PAUSE_MS - nowMs : 0;
  if (leftMs <= 0) return;
  amountOf(channel, asked);
  throw tooSoon('this channel was refunded a moment ago', Math.ceil(leftMs / 1000));
}

/** What must still hold at the write: another refund may have ended, and a call been charged, since the checks. */
const refundTerms = ({ charged }: Pick<Channel, 'charged'>, nowMs: number): RefundTerms => ({
  charged,
  pausedSince: nowMs - PAUSE_MS,
});

/** The key that signs the channel's vouchers, the client's key in the limits, and whether it made the last sale. */
interface RefundAsker {
  readonly signer: string;
  readonly client: string;
  readonly isBuyer: boolean;
}

/** Counts a day's refunds by signer, client, IPv6 /48 and in all. In memory: they protect gas, not sales. */
export function createRefundLimits(clock: Clock) {
  const open = () => createMinuteWindows(clock, MAX_CLIENTS, DAY_MS);
  const all = createMinuteWindows(clock, 1, DAY_MS);
  const ofBuyers = openCounts(open, A_DAY, 'the buyers of a channel');
  const ofThirdParties = openCounts(open, A_DAY.thirdParties, 'clients that are not the last buyers of a channel');
  const thirdParties = createMinuteWindows(clock, 1, DAY_MS);

  return {
    /** Returns what takes the count back. Throws TooMany (429, `refund_too_soon`) over any limit. */
    take({ signer, client, isBuyer }: RefundAsker): () => void {
      const ofAll = (seconds: number) => tooSoon('too many channels were refunded today', seconds);
      return takeAll([
        ...(isBuyer ? ofBuyers : ofThirdParties)(signer, client),
        ...(isBuyer ? [] : [{ windows: thirdParties, key: ALL, limit: A_DAY.thirdParties.all, refusal: ofAll }]),
        { windows: all, key: ALL, limit: A_DAY.all, refusal: ofAll },
      ]);
    },
  };
}

/** A signer's, a client's and its site's limits. `who` asks under them. */
function openCounts(open: () => ReadableWindows, most: { signer: number; client: number }, who: string) {
  const signers = open();
  const clients = openClientWindows(open, 'refunds');
  return (signer: string, client: string): Take[] => {
    const ofSigner = (seconds: number) =>
      tooSoon(`this payer has had ${most.signer} refunds for ${who} today`, seconds);
    const ofClient = (seconds: number) => tooSoon('this client has asked for too many refunds today', seconds);
    return [
      { windows: signers, key: signer, limit: most.signer, refusal: ofSigner },
      ...clientTakes(clients, client, most.client, ofClient),
    ];
  };
}

function tooSoon(why: string, retryAfterSeconds: number): TooMany {
  return new TooMany('refund_too_soon', `${why}; the payer can also withdraw without us`, retryAfterSeconds);
}
