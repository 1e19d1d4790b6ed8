import type { Clock } from '../../../lib/clock.ts';
import type { ChannelCharge } from '../../../store/ports/channel-state.ts';
import type { ChannelStore } from '../../../store/ports/channels.ts';
import { checkAccepted } from '../../evm/accepted.ts';
import { createAuthorizationChecks } from '../../evm/authorization-checks.ts';
import type { ChainCheck } from '../../evm/chain-check.ts';
import type { Evidence } from '../../evm/evidence.ts';
import type { Ledger } from '../../ledger.ts';
import type { Credential } from '../../protocol.ts';
import type { Asker, Look, PaidProof, PaymentCommand, PurchaseRail } from '../../rail.ts';
import { PaymentRefused } from '../../refusal.ts';
import type { ChannelBook } from './channel-book.ts';
import { channelReceipt } from './channel-state.ts';
import { checkDeposit, type DepositBounds, type DepositPayment, depositPayment } from './deposit.ts';
import { type ChannelPayload, readPayload, reason } from './payload.ts';
import { type Scheme, SETTLEMENT_BYTES } from './scheme.ts';
import type { createSellVoucher } from './sell-voucher.ts';
import { type ChannelTerms, checkVoucher } from './voucher.ts';
import { faultOf, StaleVoucher } from './voucher-rules.ts';

interface ChannelRailOptions {
  store: Pick<ChannelStore, 'get' | 'findSale' | 'findOpen'>;
  ledger: Pick<Ledger, 'openBefore'>;
  check: Pick<ChainCheck, 'admit' | 'simulate'>;
  evidence: Pick<Evidence, 'lookup'>;
  status: PurchaseRail['status'];
  requirement: PurchaseRail['requirement'];
  /** Checks who signed a deposit. */
  checkSignature(payment: DepositPayment, asker: Asker): Promise<Look | null>;
  sellVoucher: ReturnType<typeof createSellVoucher>;
  /** Carries out a refund whose voucher is checked. */
  refund(payload: ChannelPayload, channelId: Uint8Array, asker: Asker): ReturnType<PaymentCommand['run']>;
  book: ChannelBook;
  scheme: Scheme;
  terms: ChannelTerms;
  bounds: DepositBounds;
  network: string;
  clock: Clock;
}

const REASONS = {
  insufficient: reason('insufficient_balance'),
  // The deposit may be in the channel already, sent by a third party. The client's state is old then.
  used: reason('deposit_transaction_failed'),
};

/**
 * Payment channels. A deposit is a payment that is settled after the call is served. A voucher needs no settlement. A refund is a command.
 */
export function createChannelsRail(options: ChannelRailOptions): PurchaseRail {
  const { store, status, sellVoucher, refund, book, scheme, terms, bounds } = options;
  const checks = createAuthorizationChecks({ ...options, contract: SETTLEMENT_BYTES, reasons: REASONS });

  function checkTerms(accepted: Credential['accepted'], requirement: Parameters<typeof checkAccepted>[1]): void {
    if (accepted.network !== requirement.network) throw new PaymentRefused(reason('network_mismatch'));
    checkAccepted(accepted, requirement);
  }

  const proofOf = (payload: ChannelPayload): PaidProof => ({
    kind: 'paid',
    payer: payload.config.payer,
    redeem: async (order) => {
      checkTerms(order.accepted, order.requirement);
      return sellVoucher({ payload, channelId: checkVoucher(payload, terms, scheme) }, order);
    },
  });

  const commandOf = (payload: ChannelPayload): PaymentCommand => ({
    payer: payload.config.payer,
    run: async (accepted, requirement, asker) => {
      checkTerms(accepted, requirement);
      return refund(payload, checkVoucher(payload, terms, scheme), asker);
    },
  });

  return {
    contract: SETTLEMENT_BYTES,
    status,
    requirement: options.requirement,
    read: (given) => {
      const payload = readPayload(given);
      return payload.kind === 'deposit' ? depositPayment(payload) : proofOf(payload);
    },
    readCommand: (given) => (given.type === 'refund' ? commandOf(readPayload(given)) : null),
    checkAccepted: checkTerms,
    check: ({ payload }: DepositPayment, _requirement, now) => {
      checkVoucher(payload, terms, scheme);
      checkDeposit(payload, bounds, now);
    },
    checkSignature: options.checkSignature,
    review: checks.review,
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
      return checks.verify(id, payment, seen, more);
    },
    whyNotReserved: async ({ channel }) => (channel ? busyOrStale(store, channel) : null),
    /** The deposit is in the channel by now. */
    checkPaid: async ({ payload: { voucher, config } }: DepositPayment, price, asker) => {
      const channel = await book.reread(await book.open(voucher.channelId, config, asker, true), asker);
      const fault = faultOf(channel, { max: voucher.maxClaimableAmount, price, deposit: 0n });
      if (fault) throw fault.refusal;
    },
    refuseUsed: async ({ channel }) => {
      const known = channel && (await store.get(channel.channelId));
      return known ? new StaleVoucher(known) : new PaymentRefused(reason('cumulative_amount_mismatch'));
    },
    receipt: channelReceipt,
  };
}

/** Why a deposit was not reserved: another deposit is open, or the same voucher has bought another call. Then the client's state is old. */
async function busyOrStale(
  store: ChannelRailOptions['store'],
  { channelId, max }: ChannelCharge,
): Promise<PaymentRefused> {
  const isOpen = (await store.findOpen(channelId)) !== null;
  const known = isOpen ? null : await store.get(channelId);
  const isUsed = known !== null && (await store.findSale(channelId, max)) !== null;
  return isUsed ? new StaleVoucher(known) : new PaymentRefused(reason('channel_busy'));
}
