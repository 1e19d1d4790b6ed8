import type { SettleResponse } from '@x402/core/types';
import { bytesToHex } from '../../../lib/hex.ts';
import type { Channel } from '../../../store/ports/channels.ts';
import type { Payment, PaymentChannel } from '../../../store/ports/sales.ts';
import type { Correction } from '../../refusal.ts';
import { transactionText } from '../../transaction-id.ts';
import { SCHEME } from './describe.ts';

type Shown = NonNullable<PaymentChannel['after']>;

/** A channel as the scheme shows it to its payer. Amounts are decimal strings of base units. */
function channelState(channelId: Uint8Array, charged: bigint, state: Shown) {
  return {
    channelId: bytesToHex(channelId),
    balance: state.balance.toString(),
    totalClaimed: state.totalClaimed.toString(),
    withdrawRequestedAt: state.withdrawAt,
    refundNonce: state.refundNonce.toString(),
    chargedCumulativeAmount: charged.toString(),
  };
}

/**
 * What a client with an old state must know to sign the next voucher: the charges, and its own last voucher as their proof. `isForgiven`: whether the
 * refusal counts as no failure.
 */
export function correctionOf({ id, charged, state, signature }: Channel, isForgiven: boolean): Correction {
  const voucherState = signature && {
    signedMaxClaimable: charged.toString(),
    signature: bytesToHex(signature),
  };
  return {
    scheme: SCHEME,
    isForgiven,
    extra: { channelState: channelState(id, charged, state), ...(voucherState && { voucherState }) },
  };
}

/**
 * The receipt of a sale in a channel. A voucher has no transaction and an empty amount. A deposit has its transaction, and the amount that it put
 * into the channel. Every delivery of one sale has the same receipt.
 */
export function channelReceipt({ payer, network, amount, price, transaction, channel }: Payment): SettleResponse {
  const hash = transactionText(transaction);
  const shown = channel?.after && channelState(channel.channelId, channel.max, channel.after);
  return {
    success: true,
    payer: bytesToHex(payer),
    transaction: hash ?? '',
    network: network as SettleResponse['network'],
    amount: hash ? amount.toString() : '',
    extra: { chargedAmount: String(price ?? 0n), ...(shown && { channelState: shown }) },
  };
}

/** The receipt of a refund: what went back to the payer, in base units. */
export function refundReceipt(channel: Channel, transaction: Uint8Array, amount: bigint): SettleResponse {
  return {
    success: true,
    payer: bytesToHex(channel.payer),
    transaction: transactionText(transaction) ?? '',
    network: channel.network as SettleResponse['network'],
    amount: amount.toString(),
    extra: { channelState: channelState(channel.id, channel.charged, channel.state) },
  };
}
