import type { PaymentRequirements } from '@x402/core/types';
import type { Payment } from '../../store/ledger-port.ts';
import type { Authorization } from './authorization.ts';
import type { Settler } from './settler.ts';

/** One way for a buyer to pay in USDC, as a purchase needs it until the call is served; what comes then is the settler's. */
export interface PurchaseRail {
  /** The contract that the payer signed for: part of the ledger's key, so that a row tells its rail. */
  readonly contract: Uint8Array;
  readonly settler: Pick<Settler, 'unavailable' | 'refuses'>;
  /** This rail's entry of a challenge, made of the plain one. */
  requirement(plain: PaymentRequirements): PaymentRequirements;
  /** The cheap checks; throws PaymentRefused. `now` in Unix seconds. */
  checkAuthorization(authorization: Authorization, requirement: PaymentRequirements, now: number): void;
  /** Throws PaymentRefused unless the payer signed. */
  checkSignature(authorization: Authorization, signal: AbortSignal): Promise<void>;
  /**
   * The last look outside before the handler: throws PaymentRefused when the authorization could not be settled. Returns the block up to
   * which it was unused (0 where no chain was read). `known` is a row that had failed before; `id` is this reservation.
   */
  verify(id: string, authorization: Authorization, known: Payment | null, signal: AbortSignal): Promise<number>;
}

/** The rail that a payment's `accepted` means. */
export type RailFor = (accepted: Record<string, unknown>) => PurchaseRail;
