import type { PaymentRequirements, SettleResponse } from '@x402/core/types';
import { Unavailable } from '../errors.ts';

/** What the buyer must know to sign the next payment. The members of `extra` are added to those of the offer's entry with this scheme. */
export interface Correction {
  readonly scheme: string;
  readonly extra: Readonly<Record<string, unknown>>;
  /**
   * Whether the refusal is not counted as a failure: the buyer has paid for a call here before, and the refusal has cost no read of the chain. It is
   * counted although where the endpoint ran for it.
   */
  readonly isForgiven: boolean;
}

/** The offer's entries with a correction in them. */
export function corrected(
  accepts: readonly PaymentRequirements[],
  { scheme, extra }: Correction,
): readonly PaymentRequirements[] {
  return accepts.map((entry) => (entry.scheme === scheme ? { ...entry, extra: { ...entry.extra, ...extra } } : entry));
}

/**
 * 402: no money moved for this request. `reason` is x402's error code where x402 has one; it goes into the challenge's `error`. `settlement` is set
 * when a settlement was tried and refused; it goes into PAYMENT-RESPONSE. `correction` is set when the buyer's state is old.
 */
export class PaymentRefused extends Error {
  readonly reason: string;
  readonly settlement: SettleResponse | null;
  readonly correction: Correction | null;
  constructor(reason: string, settlement: SettleResponse | null = null, correction: Correction | null = null) {
    super(reason);
    this.name = 'PaymentRefused';
    this.reason = reason;
    this.settlement = settlement;
    this.correction = correction;
  }
}

/** 503: the reply store has no space to keep another reply for redelivery. */
export function replyStoreFull(): Unavailable {
  return new Unavailable('reply_store_full', 'There is no space to keep another reply; try again later.', 30);
}
