import type { SettleResponse } from '@x402/core/types';
import { Unavailable } from '../errors.ts';

/**
 * 402: no money moved for this request. `reason` is x402's error code where x402 has one; it goes into the challenge's `error`. `settlement` is set
 * when a settlement was tried and refused; it goes into PAYMENT-RESPONSE.
 */
export class PaymentRefused extends Error {
  readonly reason: string;
  readonly settlement: SettleResponse | null;
  constructor(reason: string, settlement: SettleResponse | null = null) {
    super(reason);
    this.name = 'PaymentRefused';
    this.reason = reason;
    this.settlement = settlement;
  }
}

/** 503: the reply store has no space to keep another reply for redelivery. */
export function replyStoreFull(): Unavailable {
  return new Unavailable('reply_store_full', 'No room to keep another reply; try again later.', 30);
}
