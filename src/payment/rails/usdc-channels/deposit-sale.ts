import type { ChannelCharge } from '../../../store/ports/channel-state.ts';
import type { ChannelStore } from '../../../store/ports/channels.ts';
import type { PurchaseRail } from '../../rail.ts';
import { PaymentRefused } from '../../refusal.ts';
import type { ChannelBook } from './channel-book.ts';
import { checkDeposit, type DepositBounds, type DepositPayment } from './deposit.ts';
import type { DepositLimits } from './deposit-limits.ts';
import { reason } from './payload.ts';
import type { Scheme } from './scheme.ts';
import { type ChannelTerms, checkVoucher } from './voucher.ts';
import { faultOf, StaleVoucher } from './voucher-rules.ts';

export interface DepositSaleOptions {
  store: Pick<ChannelStore, 'get' | 'findSale' | 'findOpen'>;
  book: ChannelBook;
  scheme: Scheme;
  terms: ChannelTerms;
  bounds: DepositBounds;
  limits: DepositLimits;
}

type DepositSale = Required<
  Pick<PurchaseRail, 'check' | 'look' | 'verify' | 'checkPaid' | 'whyNotReserved' | 'refuseUsed'>
>;

/** The checks of a deposit: those of any authorization of the token, and those of its channel and its voucher. */
export function createDepositSale(
  { store, book, scheme, terms, bounds, limits }: DepositSaleOptions,
  checks: Pick<PurchaseRail, 'look' | 'verify'>,
): DepositSale {
  return {
    check: ({ payload }: DepositPayment, _requirement, now) => {
      checkVoucher(payload, terms, scheme);
      checkDeposit(payload, bounds, now);
    },
    /** The payer first, then the channel: only a payer with the money causes a row of a channel. */
    look: async (payment: DepositPayment, asker, more) => {
      const seen = await checks.look(payment, asker, more);
      const { channelId } = payment.payload.voucher;
      await book.open(channelId, payment.payload.config, asker, true);
      return seen;
    },
    verify: async (id, payment: DepositPayment, seen, more) => {
      const { voucher, config, deposit } = payment.payload;
      const channel = await book.open(voucher.channelId, config, more.asker, true);
      const fault = faultOf(channel, { max: voucher.maxClaimableAmount, price: more.price, deposit: deposit.amount });
      if (fault) throw fault.refusal;
      const uncount = await limits.take(channel, more.asker.client);
      try {
        return { ...(await checks.verify(id, payment, seen, more)), uncount };
      } catch (error) {
        uncount();
        throw error;
      }
    },
    /** The deposit is in the channel by now. */
    checkPaid: async ({ payload: { voucher, config } }: DepositPayment, price, asker) => {
      const channel = await book.reread(await book.open(voucher.channelId, config, asker, true), asker);
      const fault = faultOf(channel, { max: voucher.maxClaimableAmount, price, deposit: 0n });
      if (fault) throw fault.refusal;
    },
    whyNotReserved: async ({ channel }) => (channel ? busyOrStale(store, channel) : null),
    refuseUsed: async ({ channel }) => {
      const known = channel && (await store.get(channel.channelId));
      return known ? new StaleVoucher(known) : new PaymentRefused(reason('cumulative_amount_mismatch'));
    },
  };
}

/** Why a deposit was not reserved: another deposit is open, or the same voucher has bought another call. Then the client's state is old. */
async function busyOrStale(
  store: DepositSaleOptions['store'],
  { channelId, max }: ChannelCharge,
): Promise<PaymentRefused> {
  const isOpen = (await store.findOpen(channelId)) !== null;
  const known = isOpen ? null : await store.get(channelId);
  const isUsed = known !== null && (await store.findSale(channelId, max)) !== null;
  return isUsed ? new StaleVoucher(known) : new PaymentRefused(reason('channel_busy'));
}
