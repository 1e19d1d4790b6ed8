import type { SettleResponse } from '@x402/core/types';
import { AppError } from '../errors.ts';
import { bytesToHex } from '../lib/hex.ts';
import type { Payment } from '../store/ports/sales.ts';
import { PaymentRefused } from './refusal.ts';
import { transactionText } from './transaction-id.ts';

/** A sold answer: its bytes and the content of PAYMENT-RESPONSE. Each delivery of one payment is the same. */
export interface Delivery {
  readonly body: Uint8Array;
  readonly receipt: SettleResponse;
}

type Network = SettleResponse['network'];

/**
 * Makes the last check before any delivery: the amount that the evidence shows is at least the price of the request, in USDC base units. Throws
 * Underpaid otherwise. An earlier check should always have prevented that. `receiptOf` makes the rail's own receipt.
 */
export function deliver(payment: Payment, body: Uint8Array, price: bigint, receiptOf = plainReceipt): Delivery {
  const paid = payment.charged ?? payment.amount;
  if (payment.state !== 'settled' || paid < price) throw new Underpaid(payment.id, paid, price);
  return { body, receipt: receiptOf(payment) };
}

/** The receipt of a payment that is settled: its transaction and the amount that the payer signed. */
function plainReceipt(payment: Payment): SettleResponse {
  return {
    success: true,
    payer: bytesToHex(payment.payer),
    transaction: transactionText(payment.transaction) ?? '',
    network: payment.network as Network,
    amount: payment.amount.toString(),
  };
}

/** 500: the payment covers less than the price, so the answer is not sent. This is a bug that an operator must see. */
export class Underpaid extends AppError {
  constructor(payment: string, paid: bigint, price: bigint) {
    const detail = 'This payment does not cover this call; nothing was delivered. Look the payment up by its nonce.';
    super(500, 'underpaid', detail, {
      charged: 'unknown',
      cause: { payment, paid: String(paid), price: String(price) },
    });
  }
}

/** The 402 of a failed settlement. x402 puts the reason in PAYMENT-RESPONSE too. */
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
