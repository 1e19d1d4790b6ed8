import type { EmbeddedNetwork } from '../../../dev/network.ts';
import type { Answer } from '../service/service.ts';

/** What can be wrong with a presented payment, so that it is refused before anything is reserved. */
export const WRONGS = ['forged', 'too small', 'of another network', 'expired', 'without the money'] as const;
export type Wrong = (typeof WRONGS)[number];

/**
 * What a rail may be unable to show: a wrong payment of this kind, a payer who spends the money elsewhere while the handler runs, a settlement whose
 * outcome is unknown for a while, or answers that never contain the payment's secret.
 */
export type Shown = Wrong | 'spent meanwhile' | 'unclear settlement' | 'secret kept from answers';

/** The receipt of a settled answer, as PAYMENT-RESPONSE has it. */
export type Receipt = Readonly<Record<string, unknown>>;

/** A payment of a fresh payer for one offer. Amounts are in the unit of the rail's offers. */
export interface RailPayment {
  /** The value of PAYMENT-SIGNATURE. */
  readonly header: string;
  /** The right payment for a wrong one; null for a payment that is right already, and where no right one exists. */
  readonly mended: string | null;
  /** The id under which `GET /v1/payments/{id}` finds the payment. */
  readonly id: string;
  readonly price: bigint;
  /** What the evidence shows as moved, where that is not the price: a deposit. */
  readonly moved?: bigint;
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
  /** What a service that sells over the rail must have in its environment. Rails of one process agree on the values. */
  readonly env: Readonly<Record<string, string>>;
  /** The seller's secrets, as hex. */
  readonly secrets: readonly string[];
  /** Does what the payer does before the call is served: signs for what a 402 asks, or pays it. */
  pay(challenge: Answer, wrong?: Wrong): Promise<RailPayment>;
  hang(): Promise<Hanging>;
  /** Reads the evidence that a receipt names, and not our ledger: the amount that was moved for the sale; 0 without evidence. */
  evidenceOf(receipt: Receipt): Promise<bigint>;
  /** The id by which a receipt's payment is looked up, where it is not the receipt's transaction. */
  idIn?(receipt: Receipt): string;
  close(): Promise<void>;
}

/** A rail as the suite of promises sees it. */
export interface RailFixture {
  readonly name: string;
  /** `signed-first`: the payer signs, the service serves, then settles. `paid-first`: the service makes the answer and offers it; the payer pays, then
   * presents the proof. `escrowed`: the money is where the seller can claim it; the payer signs, and the write of the answer settles. */
  readonly kind: 'signed-first' | 'paid-first' | 'escrowed';
  readonly surface: 'paid' | 'lightning';
  /** What this rail cannot show, each with the reason. */
  readonly cannot: Readonly<Partial<Record<Shown, string>>>;
  /** Whether a 402 offers this rail yet, where a service proves the rail before it offers it. */
  isOffered?(challenge: Answer): boolean;
  /** Converts a price to the unit of the rail's offers. */
  unitsOf(priceUsd: string): bigint;
  open(network: EmbeddedNetwork): Promise<RailUnderTest>;
}
