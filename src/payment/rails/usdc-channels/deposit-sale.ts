import type { ChannelCharge } from '../../../store/ports/channel-state.ts';
import type { Channel, ChannelStore } from '../../../store/ports/channels.ts';
import type { PurchaseRail } from '../../rail.ts';
import { PaymentRefused } from '../../refusal.ts';
import type { ChannelBook } from './channel-book.ts';
import { checkDeposit, type DepositBounds, type DepositPayment } from './deposit.ts';
import type { DepositLimits } from './deposit-limits.ts';
import { reason } from './payload.ts';
import type { Scheme } from './scheme.ts';
import { type ChannelTerms, checkVoucher } from './voucher.ts';
import { type Covered, faultOf, StaleVoucher } from './voucher-rules.ts';

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
    /**
     * 1. What the ledger knows of the channel, which costs no read.
     * 2. The payer, then the channel.
     * 3. The voucher, and the deposits of the day. Only a deposit that may be reserved causes a row of a channel.
     */
    look: async (payment: DepositPayment, asker, more) => {
      const { voucher, config } = payment.payload;
      const known = await store.get(voucher.channelId);
      const certain = known && faultOf(known, coveredBy(payment, more.price));
      if (certain && !certain.mayBeOld) throw certain.refusal;
      const seen = await checks.look(payment, asker, more);
      const { channel, isNew } = await book.look(voucher.channelId, config, asker);
      checkCovered(channel, coveredBy(payment, more.price));
      await limits.check(channel, asker.client);
      if (isNew) await book.keep(channel);
      return seen;
    },
    verify: async (id, payment: DepositPayment, seen, more) => {
      const { voucher, config } = payment.payload;
      const channel = await book.open(voucher.channelId, config, more.asker);
      checkCovered(channel, coveredBy(payment, more.price));
      const uncount = await limits.take(channel, more.asker.client);
      try {
        return { ...(await checks.verify(id, payment, seen, more)), uncount };
      } catch (error) {
        uncount();
        throw error;
      }
    },
    /** The deposit is in the channel by now. */
    checkPaid: async (payment: DepositPayment, price, asker) => {
      const { voucher, config } = payment.payload;
      const channel = await book.reread(await book.open(voucher.channelId, config, asker), asker);
      checkCovered(channel, { ...coveredBy(payment, price), deposit: 0n });
    },
    whyNotReserved: async ({ channel }) => (channel ? busyOrStale(store, channel) : null),
    refuseUsed: async ({ channel }) => {
      const known = channel && (await store.get(channel.channelId));
      return known ? new StaleVoucher(known) : new PaymentRefused(reason('cumulative_amount_mismatch'));
    },
  };
}

/** What a deposit's voucher must cover at this price, in base units. */
function coveredBy({ payload: { voucher, deposit } }: DepositPayment, price: bigint): Covered {
  return { max: voucher.maxClaimableAmount, price, deposit: deposit.amount };
}

/** Throws PaymentRefused for a voucher that does not fit the channel. */
function checkCovered(channel: Channel, covered: Covered): void {
  const fault = faultOf(channel, covered);
  if (fault) throw fault.refusal;
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
