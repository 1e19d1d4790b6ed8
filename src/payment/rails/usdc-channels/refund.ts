import { Unavailable } from '../../../errors.ts';
import type { Clock } from '../../../lib/clock.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import { createIds } from '../../../lib/id.ts';
import type { Channel, ChannelOperation, ChannelStore } from '../../../store/ports/channels.ts';
import { openUntilKnown, settlementUnknown } from '../../doubt.ts';
import type { Asker, Presenter } from '../../rail.ts';
import type { Delivery } from '../../receipt.ts';
import { PaymentRefused } from '../../refusal.ts';
import type { RailStatus } from '../../settling.ts';
import { claimCalldata, multicallCalldata, refundCalldata } from './calldata.ts';
import { refundReceipt } from './channel-answers.ts';
import type { ChannelBook } from './channel-book.ts';
import { type ChannelPayload, reason } from './payload.ts';
import { amountOf, checkBought, checkPause, createRefundLimits, refundTerms } from './refund-limits.ts';
import { isSaleOf } from './same-buyer.ts';
import type { Scheme } from './scheme.ts';
import type { Turns } from './turns.ts';
import { StaleVoucher } from './voucher-rules.ts';

const PAID = 'the refund is paid; its channel cannot be read now';

/** Milliseconds between two looks at the operation's row. */
const POLL_MS = 100;

interface RefundOptions {
  store: Pick<ChannelStore, 'begin' | 'operation' | 'lastRefund' | 'findSale' | 'get'>;
  book: ChannelBook;
  turns: Turns;
  status: Pick<RailStatus, 'cannotSend'>;
  scheme: Scheme;
  /** Signs as the receiver's authorizer: 65 bytes over a 32-byte digest. */
  sign(digest: Uint8Array): Uint8Array;
  /** Called when an operation was stored, so that the process that settles may begin at once. */
  onBegun(): void;
  network: string;
  /** How long the buyer's connection is held for the refund's end, in milliseconds. */
  waitMs: number;
  clock: Clock;
}

/**
 * Pays what a channel still holds back to its payer, on the payer's request:
 * 1. The relayer can send, the voucher is the channel's last one, and the channel has bought something. Nothing is stored before that.
 * 2. At most the balance less the charges goes back. What is charged and not claimed yet is claimed in the same transaction.
 * 3. While the refund is open, the channel takes no voucher and no deposit.
 * 4. Refunds cost us gas, and any third party can ask for one after a claim. So small ones and too many are refused (`refund-limits.ts`).
 */
export function createRefund(options: RefundOptions) {
  const { store, book, turns, status, onBegun, network, clock } = options;
  const nextId = createIds(clock);
  const limits = createRefundLimits(clock);

  /** Checks the ledger's own rows and counts the refund before anything is read for it. Returns a function that takes the count back. */
  async function admit(channel: Channel, payload: ChannelPayload, asker: Asker & Presenter): Promise<() => void> {
    const { id, charged } = channel;
    if (payload.voucher.maxClaimableAmount !== charged) throw new StaleVoucher(channel);
    checkBought(channel);
    checkPause(channel, askedIn(payload), await store.lastRefund(id), clock.nowMs());
    const sale = await store.findSale(id, charged);
    const isBuyer = sale !== null && isSaleOf(sale, asker);
    // By the key that signs for the channel: any account can fund a channel in another payer's name.
    return limits.take({ signer: bytesToHex(channel.payerAuthorizer), client: asker.client, isBuyer });
  }

  async function begin(channelId: Uint8Array, payload: ChannelPayload, asker: Asker & Presenter): Promise<string> {
    const known = await book.open(channelId, payload.config, asker);
    const uncount = await admit(known, payload, asker);
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
      if (!isTried || (await hasNotBegun(store, id))) uncount();
      throw isTried ? settlementUnknown(error) : error;
    }
  }

  return async (payload: ChannelPayload, channelId: Uint8Array, asker: Asker & Presenter): Promise<Delivery> => {
    const shortage = status.cannotSend();
    if (shortage) throw new Unavailable('settlement_unavailable', `refunds cannot be sent now: ${shortage}`);
    const charged = payload.voucher.maxClaimableAmount;
    const begun = await turns.take(
      bytesToHex(channelId),
      { chargedBefore: charged, request: 'refund', charged },
      asker.signal,
      async () => {
        const id = await begin(channelId, payload, asker);
        return { value: id, charged, isCorrected: false };
      },
    );
    if (begun === null) throw new PaymentRefused(reason('channel_busy'));
    const operation = await openUntilKnown(() => ended(options, begun));
    if (!operation) throw settlementUnknown();
    return deliver(store, channelId, operation);
  };
}

/** Whether the ledger answers that it does not have the operation. */
const hasNotBegun = (store: Pick<RefundOptions['store'], 'operation'>, id: string): Promise<boolean> =>
  store.operation(id).then(
    (operation) => operation === null,
    () => false,
  );

/** The receipt of a refund that has ended. */
async function deliver(
  store: Pick<RefundOptions['store'], 'get'>,
  channelId: Uint8Array,
  { state, transaction, amount, endedAt }: ChannelOperation,
): Promise<Delivery> {
  if (state === 'failed' || !transaction) throw new PaymentRefused(reason('refund_transaction_failed'));
  const channel = await openUntilKnown(() => store.get(channelId));
  if (!channel) throw new Unavailable('ledger_unavailable', PAID, 5, { charged: 'unknown' });
  return { body: Buffer.from('{}'), receipt: refundReceipt(channel, transaction, amount), at: endedAt };
}

/** The operation once it has ended; null where that takes longer than `waitMs`. */
async function ended({ store, waitMs, clock }: RefundOptions, id: string): Promise<ChannelOperation | null> {
  for (const untilMs = clock.nowMs() + waitMs; clock.nowMs() < untilMs; await clock.sleep(POLL_MS)) {
    const operation = await store.operation(id);
    if (operation && operation.state !== 'open') return operation;
  }
  return null;
}

/** The amount that is asked for, in base units; null for all that is left. */
const askedIn = (payload: ChannelPayload): bigint | null => (payload.kind === 'refund' ? payload.amount : null);

/** The call of the settlement contract. What is charged and not claimed yet is claimed in it. */
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
