import type { Amount, Protocol, Rail, Refusal, WayName } from '../port.ts';

// What a way to pay is made of. Each has a file beside this one: it reads its offer out of a 402, plans what will be
// signed, and signs it. Between plan and signature the payment is counted and kept (../pay.ts).

/** A 402. */
export interface Asked {
  readonly headers: Headers;
  readonly body: string;
}

/** What a seller offers in a form that cannot be paid, as text for the buyer. */
export type { Fault } from '../challenges.ts';

/**
 * What one 402 asks for by one way to pay. Its amounts, names and addresses have their form; nothing else is checked.
 */
export interface Offer {
  readonly way: WayName;
  readonly rail: Rail;
  readonly protocol: Protocol;
  readonly amount: Amount;
  /** CAIP-2, or the Lightning network's name in the protocol. */
  readonly network: string;
  readonly asset: string;
  /** An address, or the key that signed the invoice. */
  readonly payTo: string;
  /** The seller's own words, as they came. */
  readonly description: string | null;
  /** What the offer says that it is for. Null where its protocol says nothing, or has checked it. */
  readonly resource: string | null;
  /**
   * Whether the recipient names the seller, so that a later one can be compared. An invoice's signer may be a service.
   */
  readonly namesSeller: boolean;
  /** What a buyer should know besides, as a line; null: nothing. */
  readonly terms: string | null;
  /** Throws BadOffer when it must not be paid by now. */
  plan(buyer: PlanFor): Plan | Promise<Plan>;
}

export interface PlanFor {
  /** Null without a key: the plan is shown and not signed. */
  readonly address: `0x${string}` | null;
  /** Unix seconds. */
  readonly now: number;
}

/** What will be signed or paid. It is kept before that happens, so it must hold all of it; none of it is secret. */
export interface Plan {
  /** The authorization's nonce, the payment hash, or the channel. */
  readonly reference: string;
  /** Unix seconds; null: it does not expire. */
  readonly expiresAt: number | null;
  readonly channel: string | null;
  readonly content: object;
}

/** The offer is malformed, has expired, or is for another request. */
export class BadOffer extends Error {}

/** Names of protocols for people, as the asked line has them. */
export const saidBy = ({ protocol }: { readonly protocol: Protocol }): string =>
  protocol === 'x402' ? '' : `, over ${protocol.toUpperCase()}`;

/** Nothing was signed or paid, and why. */
export class Refused extends Error {
  readonly reason: Refusal;
  constructor(reason: Refusal, message: string) {
    super(message);
    this.reason = reason;
  }
}
