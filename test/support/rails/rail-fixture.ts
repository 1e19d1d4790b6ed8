import type { EmbeddedNetwork } from '../../../src/embedded/network.ts';
import type { Answer } from '../service/service.ts';

/** What can be wrong with a presented payment, so that it is refused before anything is reserved. */
export const WRONGS = ['forged', 'too small', 'of another network', 'expired', 'without the money'] as const;
export type Wrong = (typeof WRONGS)[number];

/** What a rail may be unable to show: a wrong payment of this kind, or a payer who spends the money elsewhere while the handler runs. */
export type Shown = Wrong | 'spent meanwhile';

/** A payment of a fresh payer for one offer. Amounts are in the unit of the rail's offers. */
export interface RailPayment {
  /** The value of PAYMENT-SIGNATURE. */
  readonly header: string;
  /** The right payment for a wrong one; null for a payment that is right already, and where no right one exists. */
  readonly mended: string | null;
  /** The id under which `GET /v1/payments/{id}` finds the payment. */
  readonly id: string;
  readonly price: bigint;
  /** A secret of the payer that no log and no answer may contain, as hex. */
  readonly secret: string;
  /** What the payer has lost by now. */
  lost(): Promise<bigint>;
  /** Moves the payer's money to another account. The returned function moves it back. Absent where the rail cannot show this. */
  spend?(): Promise<() => Promise<void>>;
}

/** A stop of all settlements: the party that executes them takes them and does nothing until `heal` is called. */
export interface Hanging {
  /** Resolves when that party has taken this payment. */
  arrived(payment: RailPayment): Promise<void>;
  heal(): Promise<void>;
}

/** A rail whose parts outside the service are running. */
export interface RailUnderTest {
  /** The environment of a service that sells over the rail. */
  readonly env: Readonly<Record<string, string>>;
  /** The seller's secrets, as hex. */
  readonly secrets: readonly string[];
  /** Does what the payer does before the call is served: signs for what a 402 asks, or pays it. */
  pay(challenge: Answer, wrong?: Wrong): Promise<RailPayment>;
  hang(): Promise<Hanging>;
  /** Reads the evidence, and not our ledger: the amount that a receipt's transaction moved to the seller; 0 without evidence. */
  evidenceOf(transaction: string): Promise<bigint>;
  close(): Promise<void>;
}

/** A rail as the suite of promises sees it. */
export interface RailFixture {
  readonly name: string;
  /** `signed-first`: the payer signs, the service serves, then settles. `paid-first`: the service makes the answer and offers it; the payer pays, then
   * presents the proof. */
  readonly kind: 'signed-first' | 'paid-first';
  readonly surface: 'paid' | 'lightning';
  /** What this rail cannot show, each with the reason. */
  readonly cannot: Readonly<Partial<Record<Shown, string>>>;
  /** Converts a price to the unit of the rail's offers. */
  unitsOf(priceUsd: string): bigint;
  open(network: EmbeddedNetwork): Promise<RailUnderTest>;
}
