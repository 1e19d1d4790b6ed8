import type { Clock } from '../../../lib/clock.ts';
import type { Channel, ChannelStore } from '../../../store/ports/channels.ts';
import { checkable, inDoubt } from '../../doubt.ts';
import { isSameRequest } from '../../known-payment.ts';
import type { Ledger } from '../../ledger.ts';
import type { PaidOrder } from '../../rail.ts';
import { AnswerGone, type Delivery, handOut } from '../../receipt.ts';
import { PaymentRefused } from '../../refusal.ts';
import type { RailStatus } from '../../settling.ts';
import { channelReceipt } from './channel-answers.ts';
import type { ChannelBook } from './channel-book.ts';
import type { PresentedVoucher } from './charge-voucher.ts';
import type { ClaimRisk } from './claim-risk.ts';
import type { ClaimLimits } from './claim-rows.ts';
import { reason } from './payload.ts';
import { isSaleOf } from './same-buyer.ts';
import { checkClaimable, faultOf } from './voucher-rules.ts';

export interface JudgeVoucherOptions {
  store: Pick<ChannelStore, 'findSale' | 'findOpen'>;
  ledger: Pick<Ledger, 'redeliver' | 'delivered'>;
  book: ChannelBook;
  status: Pick<RailStatus, 'cannotSend' | 'stopsSales'>;
  risk: ClaimRisk;
  limits: ClaimLimits;
  clock: Clock;
  log: { error(detail: object, message: string): void };
}

/** Judges a voucher against its channel, and finds the answer that it has bought before. */
export function createJudgeVoucher(options: JudgeVoucherOptions) {
  const { store, ledger, book } = options;

  /**
   * The answer that this voucher has bought for this very request; null when it has bought none, or has been delivered as often as it may be. Throws 410
   * (`answer_gone`) when it was never delivered and is kept no more: a refusal would make the client sign and pay again.
   */
  async function redelivered({ channelId, payload }: PresentedVoucher, order: PaidOrder): Promise<Delivery | null> {
    const sale = await store.findSale(channelId, payload.voucher.maxClaimableAmount);
    if (sale?.state !== 'settled' || !isSameRequest(sale, order)) return null;
    if (!isSaleOf(sale, order)) return null;
    const body = await ledger.redeliver(sale.id);
    if (body) return handOut(options, sale, body, { price: sale.price ?? 0n, rail: { receipt: channelReceipt } });
    if (sale.deliveredAt === null) throw new AnswerGone(channelReceipt(sale));
    return null;
  }

  /**
   * Null when the voucher fits the channel. The answer that it has bought before, when it has. Throws PaymentRefused otherwise. Throws Unavailable while
   * the channel's charges cannot be claimed. `known`: the ledger's row of the channel where it still counts; null where it must be read.
   * `isDoubted`: the voucher may be charged. So what fails before the channel is read, and shows that it is not, is `charged: "unknown"`.
   */
  async function judgeVoucher(
    voucher: PresentedVoucher,
    order: PaidOrder,
    { known, isDoubted }: { known: Channel | null; isDoubted: boolean },
  ): Promise<Delivery | null> {
    const look = () => checkable(() => fitOf(voucher, order, known));
    const fitting = await (isDoubted ? inDoubt(look) : look());
    if ('again' in fitting) return fitting.again;
    await checkClaims(options, fitting.channel, order.price);
    if (await store.findOpen(voucher.channelId)) throw new PaymentRefused(reason('channel_busy'));
    return null;
  }

  /** The channel that the voucher fits, or the answer that it has bought before. Throws PaymentRefused otherwise. */
  async function fitOf(
    voucher: PresentedVoucher,
    order: PaidOrder,
    known: Channel | null,
  ): Promise<{ channel: Channel } | { again: Delivery }> {
    const { channelId, payload } = voucher;
    const covered = { max: payload.voucher.maxClaimableAmount, price: order.price, deposit: 0n };
    let channel = await (known ? book.fresh(known, order.asker) : book.open(channelId, payload.config, order.asker));
    let fault = faultOf(channel, covered);
    const again = fault && (await redelivered(voucher, order));
    if (again) return { again };
    if (fault?.mayBeOld) {
      channel = await book.reread(channel, order.asker);
      fault = faultOf(channel, covered);
    }
    if (fault) throw fault.refusal;
    return { channel };
  }

  return { redelivered, judgeVoucher };
}

/** Throws Unavailable while claims cannot be sent, and the channel owes for too long or all channels together owe too much. */
async function checkClaims(
  { status, risk, limits, clock }: JudgeVoucherOptions,
  channel: Channel,
  price: bigint,
): Promise<void> {
  const unavailable = status.cannotSend();
  if (unavailable === null) return risk.calm();
  await risk.look();
  checkClaimable(channel, { unavailable, isTooMuch: risk.isTooMuch(price), limits, nowMs: clock.nowMs() });
}
