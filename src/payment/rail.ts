import type { PaymentRequirements } from '@x402/core/types';
import type { RailsConfig } from '../config/rails.ts';
import type { Payment } from '../store/ports/sales.ts';
import type { Authorization } from './authorization.ts';
import type { Credential } from './protocol.ts';
import type { RailSettling, Settler, SettlingTerms, Verdict } from './settler.ts';

/** A rail's name in the reports of the process that settles, as its `RailInfo` gives it. The names of all rails in a list differ. */
export type RailName = string;

/** What is known of a rail before it is opened. Every member is pure. */
export interface RailInfo {
  readonly name: RailName;
  /** Whether a configuration turns the rail on. */
  isOn(rails: RailsConfig): boolean;
  /** Makes this rail's entry in a 402 from the plain one. Called only where the rail is on. */
  entry(plain: PaymentRequirements, rails: RailsConfig): PaymentRequirements;
  /** The remote service that settles for it; null where our relayer does. */
  service(rails: RailsConfig): RailService | null;
}

/** A remote service as `/readyz` names it. */
export interface RailService {
  readonly name: string;
  /** Whether a failed probe of this service makes `/readyz` fail. The fault of any other service is only shown there. */
  readonly isVital: boolean;
}

/** A rail that is on, opened in one process. */
export interface OpenRail {
  readonly info: RailInfo;
  /** Whether a payment's `accepted` names this rail. The first rail checks a payment that no rail recognises, and says what is wrong with it. */
  recognises(accepted: Credential['accepted']): boolean;
  readonly purchase: PurchaseRail;
  /**
   * Opens the rail's settlement by this process. Called once, or once per lease where several processes may settle. Throws when the rail's
   * configuration cannot work.
   */
  openSettling(terms: SettlingTerms): RailSettling;
}

/** The client that presents a payment, and its signal. */
export interface Asker {
  /** The client's key in the limits. Clients take turns at reads that cost requests. */
  readonly client: string;
  /** Whether calls of this client, or of its IPv6 /48, have failed uncharged in this minute: then others are looked at before it. */
  readonly hasFailed: boolean;
  readonly signal: AbortSignal;
}

/** What a read of the payer found, before anything is written. */
export interface Look {
  /** Whether the authorization's nonce is used already. */
  readonly used: boolean;
  /** The balance that the payer can pay from, in USDC base units. */
  readonly balance: bigint;
  readonly hasCode: boolean;
  /**
   * Block at which a search for the authorization's use starts: 1,200 below the block of the read, because providers differ in height. 0 where no
   * chain was read.
   */
  readonly block: number;
}

/** What is known of the payer when the handler runs. */
export interface Verified {
  /** Block at which a search for the authorization's use starts; 0 where no chain was read. */
  readonly checkedBlock: number;
  /** Whether code stood at the payer's address. */
  readonly hasCode: boolean;
}

/** The client that asks for the last checks, and whether the authorization reverted here before. */
export interface VerifyTerms {
  readonly asker: Asker;
  readonly isAgain: boolean;
}

/** The client that asks for a review, and whether the review may send requests now. */
export interface ReviewTerms {
  readonly asker: Asker;
  mayLookUp(): boolean;
}

/** A decoded payment that a buyer signed. */
export interface SignedPayment {
  readonly authorization: Authorization;
  /** SHA-256 over the contract, the fields and the signature. */
  readonly authorizationHash: Uint8Array;
}

/** One way to pay in USDC: what a purchase needs of it until the call is served. The settler does the rest. */
export interface PurchaseRail {
  /** The contract that the payer signed for. It is part of the ledger's key, so each row shows its rail. */
  readonly contract: Uint8Array;
  /** The status of the rail's settler, in this process or another. */
  readonly status: Pick<Settler, 'unavailable' | 'refuses' | 'refusesCode'>;
  /** Makes this rail's entry in a challenge from the plain one. */
  requirement(plain: PaymentRequirements): PaymentRequirements;
  /** Decodes the payload. Throws PaymentRefused for another kind of payment, and for a payload that cannot be decoded. */
  read(payload: Credential['payload']): SignedPayment;
  /** Throws PaymentRefused when the terms that the buyer claims to accept are not this rail's. */
  checkAccepted(accepted: Credential['accepted'], requirement: PaymentRequirements): void;
  /** The cheap checks; throws PaymentRefused. `now` in Unix seconds. */
  checkAuthorization(authorization: Authorization, requirement: PaymentRequirements, now: number): void;
  /**
   * Throws PaymentRefused unless the payer signed. Throws TooMany or Unavailable when the payer's contract cannot be called now. Returns what it read
   * of the payer; null when it read nothing.
   */
  checkSignature(authorization: Authorization, asker: Asker): Promise<Look | null>;
  /**
   * Reads the evidence about an authorization that reverted before. `known` is its row. Sends requests of its own only where `mayLookUp` allows it.
   * Otherwise the verdict is unknown.
   */
  review(authorization: Authorization, known: Payment, terms: ReviewTerms): Promise<Verdict>;
  /**
   * Reads the payer, together with other payers. Throws PaymentRefused when the payer cannot pay for this one authorization. `signed` is what the
   * signature check read. `isAgain`: the authorization reverted before and was found unused a moment ago.
   */
  look(authorization: Authorization, asker: Asker, terms: { signed: Look | null; isAgain: boolean }): Promise<Look>;
  /**
   * Makes the last checks of a reserved payment before the handler runs. Throws PaymentRefused when the authorization could not be settled together
   * with the payer's earlier open payments. `id` is the id of this reservation.
   */
  verify(id: string, authorization: Authorization, seen: Look, terms: VerifyTerms): Promise<Verified>;
}

/** Returns the rail that a payment's `accepted` names. */
export type RailFor = (accepted: Credential['accepted']) => PurchaseRail;
