import type { Authorization } from './authorization.ts';

/**
 * The one failure that leaves the authorization usable. Our transaction was mined and moved nothing, or none was sent: a simulation failed, the
 * payer is banned, or the facilitator refused.
 */
export const REVERTED = 'invalid_exact_evm_transaction_failed';

/** Our own code: this ledger sold another request for the authorization, or another ledger sold for it. */
export const ALREADY_USED = 'payment_already_used';

/** x402's code: the evidence shows that the authorization's nonce was used for something else than this payment, or was cancelled. */
export const NONCE_USED = 'invalid_exact_evm_nonce_already_used';

/** One served, stored and still unpaid authorization. */
export interface Intent {
  readonly id: string;
  readonly authorization: Authorization;
  /** The chain had not seen the authorization up to this block: where a search for it starts. */
  readonly fromBlock: number;
  /** Whether a transaction with it may have been shown to a node before. */
  readonly broadcast: boolean;
  /** Whether code stood at the payer's address when the payment was verified. */
  readonly hasCode: boolean;
}

/**
 * How a settlement ended. `failed` is said only of what can no longer take the buyer's money by our doing:
 * a mined transaction without the transfer, an authorization cancelled, used elsewhere or expired. Everything else is `unknown`.
 */
export type Outcome =
  | {
      readonly kind: 'settled';
      readonly transaction: Uint8Array;
      readonly block: number;
      /** What the evidence says was paid, in USDC base units. */
      readonly paid: bigint;
    }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'unknown' };

/** What the evidence says of an authorization: its end, `open` while it can still be used, or unknown because it cannot be read now. */
export type Verdict = Outcome | { readonly kind: 'open' };

/** What a look at the evidence is for: a buyer waits for it (`settle`), or only reconciliation does (`collect`). */
export type LookupRank = 'settle' | 'collect';

/** Where a rail's payments show, and who settles them. The core needs no more of a rail once a call has been served. */
export interface SettlingRail {
  readonly settler: Settler;
  /** Ranks the requests that a look costs. */
  readonly evidence: {
    lookup(authorization: Authorization, fromBlock: number, options: { readonly rank: LookupRank }): Promise<Verdict>;
  };
  /** Whether only what this ledger handed over counts as paid, because other ledgers sell to the same recipient out of the same evidence. */
  readonly ownOnly: boolean;
}

/** A payer's address in hex, and why it is not settled for. */
export type RefusedPayer = readonly [payer: string, reason: string];

/**
 * The port to what moves the money: our own relayer, or a third party's facilitator.
 * Many intents in, one promise of an outcome for each, in order; a promise never rejects.
 * Presenting the same authorization twice is safe: its nonce moves money once.
 */
export interface Settler {
  settle(intents: readonly Intent[]): readonly Promise<Outcome>[];
  /** Why nothing can be settled now, or null: asked before a handler runs. */
  unavailable(): string | null;
  /** Why this payer is not settled for now, or null; asked in the same place. */
  refuses?(payer: Uint8Array): string | null;
  /** Every payer of whom `refuses` gives a reason now: what other processes that sell are told. */
  refused?(): readonly RefusedPayer[];
  /** Why no account with code is settled for now, or null; asked when the payer was seen to have code. */
  refusesCode?(): string | null;
  /** Ends the work; what is still open resolves as unknown. */
  stop(): Promise<void>;
}
