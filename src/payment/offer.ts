import type { PaymentRequirements } from '@x402/core/types';
import type { Prepared } from './protocol.ts';

/** What an endpoint costs in USDC, prepared at start, so that a 402 costs little more than its bytes. */
export interface Offer {
  /** The plain one, from which each rail's entry is made. */
  readonly requirement: PaymentRequirements;
  /** Every way to pay in USDC, the plain one first. */
  readonly accepts: readonly PaymentRequirements[];
  readonly price: bigint;
  readonly demand: Prepared;
}
