import type { SettleResponse } from '@x402/core/types';
import { AppError } from '../errors.ts';
import { bytesToHex } from '../lib/hex.ts';
import type { Payment } from '../store/ports/sales.ts';
import { PaymentRefused } from './refusal.ts';
import { transactionText } from './transaction-id.ts';

/** A sold answer: the bytes and what PAYMENT-RESPONSE says. The same for the same payment, however often it is delivered. */
export interface Delivery {
  readonly body: Uint8Array;
  readonly receipt: SettleResponse;
}

type Network = SettleResponse['network'];

/**
 * The last check before bytes leave, for every delivery: what the evidence says was paid is at least the price of the request that they answer,
 * in USDC base units. Throws Underpaid where it is not, which no other check should let happen.
 */
export function deliver(payment: Payment, body: Uint8Array, price: bigint): Delivery {
  const paid = payment.charged ?? payment.amount;
  if (payment.state !== 'settled' || paid < price) throw new Underpaid(payment.id, paid, price);
  const receipt: SettleResponse = {
    success: true,
    payer: bytesToHex(payment.payer),
    transaction: transactionText(payment.transaction) ?? '',
    network: payment.network as Network,
    amount: payment.amount.toString(),
  };
  return { body, receipt };
}

/** An answer was about to leave for less than its price: a fault of ours, and one that an operator must hear of. */
export class Underpaid extends AppError {
  constructor(payment: string, paid: bigint, price: bigint) {
    const detail = 'This payment does not cover this call; nothing was delivered. Look the payment up by its nonce.';
    super(500, 'underpaid', detail, {
      charged: 'unknown',
      cause: { payment, paid: String(paid), price: String(price) },
    });
  }
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
