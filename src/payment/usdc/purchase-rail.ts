import type { PaymentRequirements } from '@x402/core/types';
import type { Payment } from '../../store/ledger-port.ts';
import type { Authorization } from './authorization.ts';
import type { Settler } from './settler.ts';

/** Who asks, and for how long. */
export interface Asker {
  /** The client's key as limits see it: clients take turns for what a look costs. */
  readonly client: string;
  readonly signal: AbortSignal;
}

/** What the last look outside told. */
export interface Verified {
  /** The block up to which the authorization was unused; 0 where no chain was read. */
  readonly checkedBlock: number;
  /** Whether code stood at the payer's address. */
  readonly hasCode: boolean;
}

/** One way for a buyer to pay in USDC, as a purchase needs it until the call is served; what comes then is the settler's. */
export interface PurchaseRail {
  /** The contract that the payer signed for: part of the ledger's key, so that a row tells its rail. */
  readonly contract: Uint8Array;
  readonly settler: Pick<Settler, 'unavailable' | 'refuses' | 'refusesCode'>;
  /** This rail's entry of a challenge, made of the plain one. */
  requirement(plain: PaymentRequirements): PaymentRequirements;
  /** The cheap checks; throws PaymentRefused. `now` in Unix seconds. */
  checkAuthorization(authorization: Authorization, requirement: PaymentRequirements, now: number): void;
  /** Throws PaymentRefused unless the payer signed; TooMany or Unavailable where the payer's contract cannot be asked now. */
  checkSignature(authorization: Authorization, asker: Asker): Promise<void>;
  /**
   * The last look outside before the handler: throws PaymentRefused when the authorization could not be settled. `known` is a row that had
   * failed before; `id` is this reservation.
   */
  verify(id: string, authorization: Authorization, known: Payment | null, asker: Asker): Promise<Verified>;
}

/** The rail that a payment's `accepted` means. */
export type RailFor = (accepted: Record<string, unknown>) => PurchaseRail;
