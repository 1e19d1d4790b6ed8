import type { PaymentState } from './sales.ts';

/** How many payments stand in a state, and their sum in the rail's base units: of USDC, or millisatoshis. */
export interface StateSum {
  readonly rail: 'usdc' | 'lightning';
  readonly state: string;
  readonly count: number;
  readonly amount: bigint;
}

/** Everything at one instant. Times in Unix milliseconds. */
export interface LedgerStatus {
  readonly sums: readonly StateSum[];
  readonly oldestOpen: { readonly id: string; readonly state: PaymentState; readonly reservedAt: number } | null;
  /** Kept replies and answers of both rails. */
  readonly replies: { readonly count: number; readonly bytes: number };
  /** Null in a ledger of before the rail. */
  readonly lightning: { readonly invoices: number; readonly facilitatorClaims: number } | null;
}

/** A payment without its payer, its parameters and its client: what the public lookup shows, when, and the route. */
export interface ListedPayment {
  readonly id: string;
  readonly state: PaymentState;
  readonly amount: bigint;
  readonly nonce: Uint8Array;
  readonly transaction: Uint8Array | null;
  readonly block: number | null;
  readonly reservedAt: number;
  readonly endedAt: number | null;
  /** The listed path of what was bought, without the query; null in a row from before it was kept. */
  readonly route: string | null;
}

/** Money that came in: a settled payment, or a claim through our own routes. */
export interface Income {
  readonly rail: 'usdc' | 'lightning';
  /** Null on Lightning, where the payment hash is all there is. */
  readonly id: string | null;
  /** Base units of USDC, or millisatoshis. */
  readonly amount: bigint;
  readonly at: number;
  /** The transaction's hash, or the payment hash. */
  readonly hash: Uint8Array;
  readonly block: number | null;
  /** As in `ListedPayment`. */
  readonly route: string | null;
}

/** What an operator may ask a ledger, whichever database holds it, also beside running services: nothing is written, and nobody waits for it. */
export interface LedgerReports {
  status(): Promise<LedgerStatus>;
  /** Newest first; null is any state. */
  list(state: PaymentState | null, limit: number): Promise<ListedPayment[]>;
  /** Oldest first, from `from` (inclusive) to `to` (exclusive), row by row: a ledger need not fit into memory. */
  income(from: number, to: number): AsyncIterable<Income>;
  close(): Promise<void>;
}

/** The states of a payment, in the order in which a status tells them. */
export const PAYMENT_STATES: readonly PaymentState[] = ['reserved', 'settling', 'unknown', 'settled', 'failed'];
/** The states of a claim through our own routes, likewise. */
export const CLAIM_STATES = ['claimed', 'delivered'] as const;
