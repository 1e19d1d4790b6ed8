import type { SettleResponse } from '@x402/core/types';
import { AppError } from '../errors.ts';
import { bytesToHex } from '../lib/hex.ts';
import type { Payment } from '../store/ports/sales.ts';
import type { Ledger } from './ledger.ts';
import { PaymentRefused } from './refusal.ts';
import { transactionText } from './transaction-id.ts';

/** A sold answer: its bytes and the content of PAYMENT-RESPONSE. Each delivery of one payment is the same. */
export interface Delivery {
  readonly body: Uint8Array;
  readonly receipt: SettleResponse;
  /** When the payment was settled, in Unix milliseconds. */
  readonly at: number | null;
  /** Called after the last byte is sent, unless the delivery was noted before. */
  onSent?(): Promise<void>;
}

type Network = SettleResponse['network'];

/**
 * Makes the last check before any delivery: the amount that the evidence shows is at least the price of the request, in USDC base units. Throws
 * Underpaid otherwise. An earlier check should always have prevented that. `receiptOf` makes the rail's own receipt.
 */
export function deliver(payment: Payment, body: Uint8Array, price: bigint, receiptOf = plainReceipt): Delivery {
  const paid = payment.charged ?? payment.amount;
  if (payment.state !== 'settled' || paid < price) throw new Underpaid(payment.id, paid, price);
  return { body, receipt: receiptOf(payment), at: payment.endedAt };
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

/** Returns the answer for delivery, which is then noted. Throws Underpaid and logs an alert for the operator. Amounts in USDC base units. */
export function handOut(
  { ledger, log }: { ledger: Pick<Ledger, 'delivered'>; log: { error(detail: object, message: string): void } },
  payment: Payment,
  body: Uint8Array,
  { price, rail }: { price: bigint; rail: { receipt?(payment: Payment): SettleResponse } },
): Delivery {
  try {
    const delivery = deliver(payment, body, price, rail.receipt);
    if (payment.deliveredAt !== null) return delivery;
    return { ...delivery, onSent: () => ledger.delivered(payment.id).then(() => {}) };
  } catch (error) {
    if (error instanceof Underpaid) log.error({ err: error }, 'ALERT: an answer was held back because less was paid');
    throw error;
  }
}

/**
 * 410: the payment was taken, and its answer was never delivered and is no longer kept. `receipt` goes with it where the client needs it: a channel's client
 * learns the charges from it, and would otherwise sign the same voucher for ever.
 */
export class AnswerGone extends AppError {
  readonly receipt: SettleResponse | null;
  constructor(receipt: SettleResponse | null = null) {
    const detail =
      'this payment was taken, and its answer is no longer kept: it was not fetched in time; ask the seller';
    super(410, 'answer_gone', detail, { charged: true });
    this.receipt = receipt;
  }
}

/** The 410 of a payment. It has a receipt where the rail makes its own. */
export function goneOf(payment: Payment, rail: { receipt?(payment: Payment): SettleResponse }): AnswerGone {
  return new AnswerGone(rail.receipt?.(payment) ?? null);
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

/** The 402 of a failed settlement, with the rail's name of the reason. x402 puts the reason in PAYMENT-RESPONSE too. */
export function refusedSettlement(payment: Payment, rail: { reasonOf?(reason: string): string } = {}): PaymentRefused {
  const stored = payment.reason ?? 'unexpected_settle_error';
  const reason = rail.reasonOf?.(stored) ?? stored;
  const settlement = {
    success: false,
    errorReason: reason,
    payer: bytesToHex(payment.payer),
    transaction: '',
    network: payment.network as Network,
  };
  return new PaymentRefused(reason, { settlement });
}
