import { Unavailable } from '../../../errors.ts';
import { bytesToHex } from '../../../lib/hex.ts';
import type { Channel, ChannelStore } from '../../../store/ports/channels.ts';
import { inDoubt } from '../../doubt.ts';
import { identifierConflict, isSameRequest } from '../../known-payment.ts';
import type { Ledger } from '../../ledger.ts';
import { createReadSoon, type ReadSoon } from '../../ledger-timeout.ts';
import type { PaidOrder } from '../../rail.ts';
import { type Delivery, handOut } from '../../receipt.ts';
import { PaymentRefused } from '../../refusal.ts';
import { channelReceipt } from './channel-answers.ts';
import { type ChargeVoucherOptions, chargeVoucher, nonceOf, type PresentedVoucher } from './charge-voucher.ts';
import { createCorrections } from './corrections.ts';
import { createJudgeVoucher, type JudgeVoucherOptions } from './judge-voucher.ts';
import { reason } from './payload.ts';
import type { Turn, Turns } from './turns.ts';
import { StaleVoucher } from './voucher-rules.ts';

interface SellVoucherOptions extends JudgeVoucherOptions, ChargeVoucherOptions {
  store: JudgeVoucherOptions['store'] & Pick<ChannelStore, 'get'>;
  ledger: JudgeVoucherOptions['ledger'] & ChargeVoucherOptions['ledger'] & Pick<Ledger, 'findByIdentifier'>;
  turns: Turns;
}

/** How often a sale may lose its charge to another process before it gives up. */
const MOST_TRIES = 3;

interface TurnOptions {
  /** The number of the request, as `arrive` gave it. */
  readonly arrival: number;
  /** The ledger's row of the channel where it was read just before, else null. An older row could miss a sale, and the endpoint would run for nothing. */
  readonly known: Channel | null;
  /** Whether a sale of this process may have charged the voucher since the channel was read, or the ledger has no row of the channel. */
  readonly isDoubted: boolean;
}

/** One turn of a request in its channel. `redelivered` and `arrive` are for the time before it. */
function createTurn(options: SellVoucherOptions) {
  const corrections = createCorrections(options.store);
  const soon = createReadSoon(options.clock);
  const { redelivered, judgeVoucher } = createJudgeVoucher(options);

  async function sellInTurn(
    voucher: PresentedVoucher,
    order: PaidOrder,
    { known, isDoubted }: Pick<TurnOptions, 'known' | 'isDoubted'>,
  ): Promise<Delivery> {
    let body: Uint8Array | null = null;
    for (let tries = 0; tries < MOST_TRIES; tries++) {
      // The channel is read again after a lost charge: another process has charged it meanwhile.
      const state = tries === 0 ? { known, isDoubted } : { known: null, isDoubted: true };
      const again = await judgeVoucher(voucher, order, state);
      if (again) return again;
      body ??= await order.run();
      const sale = await chargeVoucher(options, voucher, order, body);
      if (!sale) continue;
      options.risk.note(order.price);
      return handOut(options, sale, body, { price: order.price, rail: { receipt: channelReceipt } });
    }
    throw new PaymentRefused(reason('channel_busy'));
  }

  /**
   * Throws the error. Another process may have charged the same voucher meanwhile. Unless the ledger shows that it is not charged, the error does not say
   * that nothing is charged.
   */
  async function fail({ channelId, payload }: PresentedVoucher, error: unknown): Promise<never> {
    if (error instanceof PaymentRefused) throw error;
    const now = await soon(options.store.get(channelId)).catch(() => 'unread' as const);
    if (now !== 'unread' && now && now.charged < payload.voucher.maxClaimableAmount) throw error;
    return inDoubt(() => Promise.reject(error));
  }

  /** One turn. A stale voucher is an outcome of the turn, because the channel then waits for the corrected one. */
  async function turn(
    voucher: PresentedVoucher,
    order: PaidOrder,
    { arrival, ...more }: TurnOptions,
  ): Promise<Turn<Delivery | PaymentRefused>> {
    const { maxClaimableAmount: max } = voucher.payload.voucher;
    try {
      return { value: await sellInTurn(voucher, order, more), charged: max, isCorrected: false };
    } catch (error) {
      if (!(error instanceof StaleVoucher)) return fail(voucher, error);
      const value = await inDoubt(() => corrections.answer(voucher.channelId, max, error, arrival));
      return { value, charged: error.charged, isCorrected: true };
    }
  }

  return { turn, redelivered, arrive: corrections.arrive };
}

/**
 * Sells a call for a voucher:
 * 1. A voucher that has bought this very request gets the same answer again, or 410 when that was never delivered and is kept no more. Whatever else fails
 *    for a voucher that may be charged is `charged: "unknown"`.
 * 2. The limits of payer and client, what stops all sales, the claims and the payment identifier are checked.
 * 3. The request waits for its turn in the channel.
 * 4. The channel is read again, unless it was read just before. The voucher must fit the channel's charges and its money. One that does not has bought
 *    this very request, or gets a refusal with the new charges. One that fits has bought nothing: a sale raises the charges to its voucher in the same
 *    write. So a sale needs no look for an earlier one. Earlier charges must not wait for a claim that cannot be sent.
 * 5. The endpoint runs. A failure charges nothing, and the same voucher buys the next answer.
 * 6. The charge and the answer are stored in one write. Then the answer is sent.
 */
export function createSellVoucher(options: SellVoucherOptions) {
  const { turn, redelivered, arrive } = createTurn(options);
  const soon = createReadSoon(options.clock);

  /** Steps 2 to 6. */
  async function sell(
    voucher: PresentedVoucher,
    order: PaidOrder,
    arrival: number,
    { channel, inTurn }: Awaited<ReturnType<typeof readChannel>>,
  ): Promise<Delivery> {
    const { maxClaimableAmount: max } = voucher.payload.voucher;
    const key = bytesToHex(voucher.channelId);
    const check = async (): Promise<void> => {
      order.admit();
      const why = options.status.stopsSales?.() ?? null;
      if (why !== null) throw new Unavailable('settlement_unavailable', `nothing is sold over channels now: ${why}`);
      // A claim makes vouchers public, so a third party may present one over no more than what is claimed. It never takes a turn in the channel.
      if (channel && max <= channel.state.totalClaimed)
        throw new StaleVoucher(channel, { code: 'cumulative_below_claimed' });
      await checkIdentifier({ ...options, soon }, voucher, order);
    };
    // A sale of the same voucher may be under way, or may have ended since the channel was read.
    await (inTurn(false).isDoubted || options.turns.isBusy(key) ? inDoubt(check) : check());
    const request = Buffer.from(order.requestHash).toString('latin1');
    const asking = { chargedBefore: max - order.price, charged: channel?.charged ?? null, request };
    const sold = await options.turns.take(key, asking, order.asker.signal, (hasWaited) =>
      turn(voucher, order, { arrival, ...inTurn(hasWaited) }),
    );
    if (sold === null) throw new PaymentRefused(reason('channel_busy'));
    if (sold instanceof PaymentRefused) throw sold;
    return sold;
  }

  return async (voucher: PresentedVoucher, order: PaidOrder): Promise<Delivery> => {
    const arrival = arrive();
    const read = await readChannel({ ...options, soon }, voucher, order);
    const { channel } = read;
    // A voucher over more than the charges has bought nothing.
    if (!channel || voucher.payload.voucher.maxClaimableAmount > channel.charged)
      return sell(voucher, order, arrival, read);
    // Any other voucher may have been charged, whatever fails now. A request that needs no turn does not wait for one.
    return inDoubt(async () => (await redelivered(voucher, order)) ?? (await sell(voucher, order, arrival, read)));
  };
}

/** The channel as the ledger has it. `inTurn` tells in the request's turn whether that row still counts. */
async function readChannel(
  { store, turns, soon }: Pick<SellVoucherOptions, 'store' | 'turns'> & { soon: ReadSoon },
  { channelId, payload }: PresentedVoucher,
  { identifierHash }: PaidOrder,
) {
  const turnsBefore = turns.ended();
  const channel = await soon(store.get(channelId));
  // Other processes and deposits change a channel without a turn of this process. So the row counts only where nothing was waited for since: no turn,
  // and no look for an identifier or for an earlier sale of the voucher.
  const isNew = !identifierHash && channel !== null && payload.voucher.maxClaimableAmount > channel.charged;
  const inTurn = (hasWaited: boolean) => {
    const isDoubted = !channel || hasWaited || turns.ended() !== turnsBefore;
    return { isDoubted, known: isNew && !isDoubted ? channel : null };
  };
  return { channel, inTurn };
}

/** Throws 409 when another payment holds the identifier, or this voucher for another request. */
async function checkIdentifier(
  { ledger, soon }: Pick<SellVoucherOptions, 'ledger'> & { soon: ReadSoon },
  voucher: PresentedVoucher,
  order: PaidOrder,
): Promise<void> {
  const holder = order.identifierHash && (await soon(ledger.findByIdentifier(order.identifierHash)));
  if (!holder) return;
  const isSameVoucher = Buffer.compare(holder.nonce, nonceOf(voucher)) === 0;
  if (isSameVoucher && isSameRequest(holder, order)) return;
  // Where this voucher holds it for another request, it is charged.
  throw identifierConflict(isSameVoucher);
}
