import type { PaymentRequirements } from '@x402/core/types';
import type { Payment } from '../store/ports/sales.ts';
import type { Authorization } from './authorization.ts';
import type { Credential } from './protocol.ts';
import type { Settler, Verdict } from './settler.ts';

/** The client that presents a payment, and its signal. */
export interface Asker {
  /** The client's key as limits see it: clients take turns for what a look costs. */
  readonly client: string;
  /** Whether calls of this client, or of its IPv6 /48, have failed uncharged in this minute: then others are looked at before it. */
  readonly hasFailed: boolean;
  readonly signal: AbortSignal;
}

/** What a look at the payer told before anything is written. */
export interface Look {
  /** Whether the authorization is used already. */
  readonly used: boolean;
  /** What the payer has to pay with, in USDC base units. */
  readonly balance: bigint;
  readonly hasCode: boolean;
  /** Where a search for its use starts: the block read at less 1,200, because providers differ in height. 0 where no chain was read. */
  readonly block: number;
}

/** What is known of the payer when the handler runs. */
export interface Verified {
  /** Where a search for the authorization's use starts; 0 where no chain was read. */
  readonly checkedBlock: number;
  /** Whether code stood at the payer's address. */
  readonly hasCode: boolean;
}

/** Who asks for the last checks, of what was or was not presented before. */
export interface VerifyTerms {
  readonly asker: Asker;
  readonly isAgain: boolean;
}

/** Who asks for a review, and whether it may cost requests now. */
export interface ReviewTerms {
  readonly asker: Asker;
  mayLookUp(): boolean;
}

/** What a buyer signed, once it could be read. */
export interface SignedPayment {
  readonly authorization: Authorization;
  /** Of all that the authorization is, with the contract that it is for. */
  readonly authorizationHash: Uint8Array;
}

/** One way for a buyer to pay in USDC, as a purchase needs it until the call is served; what comes then is the settler's. */
export interface PurchaseRail {
  /** The contract that the payer signed for: part of the ledger's key, so that a row tells its rail. */
  readonly contract: Uint8Array;
  readonly settler: Pick<Settler, 'unavailable' | 'refuses' | 'refusesCode'>;
  /** This rail's entry of a challenge, made of the plain one. */
  requirement(plain: PaymentRequirements): PaymentRequirements;
  /** Reads what pays; throws PaymentRefused for another way of paying, or for what cannot be read. */
  read(payload: Credential['payload']): SignedPayment;
  /** Throws PaymentRefused where the terms that the buyer says it accepted are not this rail's. */
  checkAccepted(accepted: Credential['accepted'], requirement: PaymentRequirements): void;
  /** The cheap checks; throws PaymentRefused. `now` in Unix seconds. */
  checkAuthorization(authorization: Authorization, requirement: PaymentRequirements, now: number): void;
  /**
   * Throws PaymentRefused unless the payer signed; TooMany or Unavailable where the payer's contract cannot be asked now. Returns what it
   * learned of the payer on its way; null where it asked for nothing.
   */
  checkSignature(authorization: Authorization, asker: Asker): Promise<Look | null>;
  /**
   * What became of an authorization that reverted before, `known` being its row: the evidence's verdict. Asks what costs requests of its own
   * only where `mayLookUp` says so; else the verdict is unknown.
   */
  review(authorization: Authorization, known: Payment, terms: ReviewTerms): Promise<Verdict>;
  /**
   * Throws PaymentRefused where the payer cannot pay for this one authorization, as a read that payers share tells. `signed` is what the check of the
   * signature learned. `isAgain`: it reverted before and was found unused a moment ago.
   */
  look(authorization: Authorization, asker: Asker, terms: { signed: Look | null; isAgain: boolean }): Promise<Look>;
  /**
   * The last checks before the handler, of a payment that is reserved: throws PaymentRefused when the authorization could not be settled beside
   * all that the payer promised before. `id` is this reservation.
   */
  verify(id: string, authorization: Authorization, seen: Look, terms: VerifyTerms): Promise<Verified>;
}

/** The rail that a payment's `accepted` means. */
export type RailFor = (accepted: Record<string, unknown>) => PurchaseRail;
