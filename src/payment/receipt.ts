import type { SettleResponse } from '@x402/core/types';
import { bytesToHex } from '../lib/hex.ts';
import type { Payment } from '../store/ledger-port.ts';
import { PaymentRefused } from './refusal.ts';
import { transactionText } from './usdc/transaction-id.ts';

/** A sold answer: the bytes and what PAYMENT-RESPONSE says. The same for the same payment, however often it is delivered. */
export interface Delivery {
  readonly body: Uint8Array;
  readonly receipt: SettleResponse;
}

type Network = SettleResponse['network'];

export function deliver(payment: Payment, body: Uint8Array): Delivery {
  const receipt: SettleResponse = {
    success: true,
    payer: bytesToHex(payment.payer),
    transaction: transactionText(payment.transaction) ?? '',
    network: payment.network as Network,
    amount: payment.amount.toString(),
  };
  return { body, receipt };
}

/** The 402 of a settlement that the chain refused: x402 wants the reason in PAYMENT-RESPONSE too. */
export function refusedSettlement(payment: Payment): PaymentRefused {
  const reason = payment.reason ?? 'unexpected_settle_error';
  return new PaymentRefused(reason, {
    success: false,
    errorReason: reason,
    payer: bytesToHex(payment.payer),
    transaction: '',
    network: payment.network as Network,
  });
}
