import type { EmbeddedNetwork } from '../../../src/embedded/network.ts';
import type { Answer } from '../service/service.ts';

/** What can be wrong with a presented payment, so that it is refused before anything is reserved. */
export const WRONGS = ['forged', 'too small', 'of another network', 'expired', 'without the money'] as const;
export type Wrong = (typeof WRONGS)[number];

/** What a rail may be unable to show: a wrong payment of this kind, or money that goes elsewhere while the handler runs. */
export type Shown = Wrong | 'spent meanwhile';

/** A payment of a fresh payer for one offer. Amounts are in the unit of the rail's offers. */
export interface RailPayment {
  /** The value of PAYMENT-SIGNATURE. */
  readonly header: string;
  /** The same payment as it should have been presented; null where nothing was changed, or there is no right one. */
  readonly mended: string | null;
  /** Under which `GET /v1/payments/{id}` finds it. */
  readonly id: string;
  readonly price: bigint;
  /** What must stand in no log and no answer, as hex. */
  readonly secret: string;
  /** What the payer has lost by now. */
  lost(): Promise<bigint>;
  /** Takes the payer's money elsewhere; what is returned brings it back. Only where the rail can show it. */
  spend?(): Promise<() => Promise<void>>;
}

/** Settlements that hang from here on, in the hands of the party that executes them. */
export interface Hanging {
  /** Resolves when a payment has come there. */
  arrived(): Promise<void>;
  heal(): Promise<void>;
}

/** A rail whose parts outside the service are running. */
export interface RailUnderTest {
  /** What the service sells over it with. */
  readonly env: Readonly<Record<string, string>>;
  /** The seller's secrets, as hex. */
  readonly secrets: readonly string[];
  /** Pays what a 402 asks, as far as a payer pays before the call is served. */
  pay(challenge: Answer, wrong?: Wrong): Promise<RailPayment>;
  hang(): Promise<Hanging>;
  /** What a receipt's transaction moved to the seller, by the evidence itself and not by our ledger; 0 where there is none. */
  evidenceOf(transaction: string): Promise<bigint>;
  close(): Promise<void>;
}

/** A rail as the suite of promises sees it. */
export interface RailFixture {
  readonly name: string;
  /** `signed`: served first, then settled. `paid`: the answer is made first, then offered, and the money has moved before the proof is presented. */
  readonly kind: 'signed' | 'paid';
  readonly surface: 'paid' | 'lightning';
  /** The program that sells over it, as a path. */
  readonly program: string;
  /** What cannot be shown over this rail, each with the reason. */
  readonly cannot: Readonly<Partial<Record<Shown, string>>>;
  /** What this price comes to in the unit of the rail's offers. */
  unitsOf(priceUsd: string): bigint;
  open(network: EmbeddedNetwork): Promise<RailUnderTest>;
}
