import type { PaymentRequirements } from '@x402/core/types';
import type { Prepared } from './protocol.ts';

/** What an endpoint costs in USDC. It is prepared at start, so that a 402 takes little more work than sending its bytes. */
export interface Offer {
  /** The plain requirement. Each rail makes its entry from it. */
  readonly requirement: PaymentRequirements;
  /** Every way to pay in USDC, the plain one first. */
  readonly accepts: readonly PaymentRequirements[];
  readonly price: bigint;
  readonly demand: Prepared;
}
