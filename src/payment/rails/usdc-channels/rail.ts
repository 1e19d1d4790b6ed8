import type { Clock } from '../../../lib/clock.ts';
import type { Ledger } from '../../ledger.ts';
import type { Accepted } from '../../protocol.ts';
import type { Asker, Look, PaidProof, PaymentCommand, Presenter, PurchaseRail } from '../../rail.ts';
import { PaymentRefused } from '../../refusal.ts';
import { checkAccepted } from '../../usdc/authorization.ts';
import { type ChainCheck, createAuthorizationChecks } from '../../usdc/checks.ts';
import type { Evidence } from '../../usdc/evidence.ts';
import { channelReceipt } from './channel-answers.ts';
import { type DepositPayment, depositPayment, depositReason } from './deposit.ts';
import { createDepositSale, type DepositSaleOptions } from './deposit-sale.ts';
import { type ChannelPayload, readPayload, reason } from './payload.ts';
import { SETTLEMENT_BYTES } from './scheme.ts';
import type { createSellVoucher } from './sell-voucher.ts';
import { checkVoucher } from './voucher.ts';

interface ChannelRailOptions extends DepositSaleOptions {
  ledger: Pick<Ledger, 'openBefore'>;
  balanceContracts: readonly Uint8Array[];
  check: Pick<ChainCheck, 'admit' | 'simulate'>;
  evidence: Pick<Evidence, 'lookup'>;
  status: PurchaseRail['status'];
  requirement: PurchaseRail['requirement'];
  /** Checks who signed a deposit. */
  checkSignature(payment: DepositPayment, asker: Asker): Promise<Look | null>;
  sellVoucher: ReturnType<typeof createSellVoucher>;
  /** Carries out a refund whose voucher is checked. */
  refund(payload: ChannelPayload, channelId: Uint8Array, asker: Asker & Presenter): ReturnType<PaymentCommand['run']>;
  network: string;
  clock: Clock;
}

const REASONS = {
  insufficient: reason('insufficient_balance'),
  // The deposit may be in the channel already, sent by a third party. The client's state is old then.
  used: reason('deposit_transaction_failed'),
  simulation: reason('deposit_simulation_failed'),
};

/**
 * Payment channels. A deposit is a payment that is settled after the call is served. A voucher needs no settlement. A refund is a command.
 */
export function createChannelsRail(options: ChannelRailOptions): PurchaseRail {
  const { status, requirement, checkSignature } = options;
  const checks = createAuthorizationChecks({ ...options, contract: SETTLEMENT_BYTES, reasons: REASONS });

  return {
    ...{ contract: SETTLEMENT_BYTES, status, requirement, checkSignature },
    read: (given) => {
      const payload = readPayload(given);
      return payload.kind === 'deposit' ? depositPayment(payload) : proofOf(payload, options);
    },
    readCommand: (given) => (given.type === 'refund' ? commandOf(readPayload(given), options) : null),
    checkAccepted: checkTerms,
    review: checks.review,
    ...createDepositSale(options, checks),
    reasonOf: depositReason,
    receipt: channelReceipt,
  };
}

function checkTerms(accepted: Accepted, requirement: Parameters<typeof checkAccepted>[1]): void {
  if (accepted.network !== requirement.network) throw new PaymentRefused(reason('network_mismatch'));
  checkAccepted(accepted, requirement);
}

/**
 * Whose failures and refunds count: the key that signs the channel's vouchers. Any account can fund a channel in the name of a payer who has signed
 * nothing. Stock clients sign with the payer's own key.
 */
const signerOf = ({ config }: ChannelPayload): Uint8Array => config.payerAuthorizer;

function proofOf(payload: ChannelPayload, { terms, scheme, sellVoucher }: ChannelRailOptions): PaidProof {
  return {
    kind: 'paid',
    signer: signerOf(payload),
    redeem: async (order) => {
      checkTerms(order.accepted, order.requirement);
      return sellVoucher({ payload, channelId: checkVoucher(payload, terms, scheme) }, order);
    },
  };
}

function commandOf(payload: ChannelPayload, { terms, scheme, refund }: ChannelRailOptions): PaymentCommand {
  return {
    signer: signerOf(payload),
    run: async (accepted, requirement, asker) => {
      checkTerms(accepted, requirement);
      return refund(payload, checkVoucher(payload, terms, scheme), asker);
    },
  };
}
