import type { PaymentState } from './payments.ts';

/**
 * The number of payments in a state, and their sum in the rail's base units (of USDC, or millisatoshis). A sale in a
 * channel counts with its price, also when it brought a larger deposit.
 */
export interface StateSum {
  readonly rail: 'usdc' | 'lightning';
  readonly state: string;
  readonly count: number;
  readonly amount: bigint;
}

/** The ledger's status at one instant. Times in Unix milliseconds. */
export interface LedgerStatus {
  readonly sums: readonly StateSum[];
  readonly oldestOpen: { readonly id: string; readonly state: PaymentState; readonly reservedAt: number } | null;
  /** Kept replies and answers of both rails. */
  readonly replies: { readonly count: number; readonly bytes: number };
  /** Null in a ledger from before the Lightning rail. */
  readonly lightning: { readonly invoices: number; readonly facilitatorClaims: number } | null;
}

/** A payment as the public lookup shows it, with its time and route. Payer, parameters and client are left out. */
export interface ListedPayment {
  readonly id: string;
  readonly state: PaymentState;
  readonly amount: bigint;
  readonly nonce: Uint8Array;
  readonly transaction: Uint8Array | null;
  readonly block: number | null;
  readonly reservedAt: number;
  readonly endedAt: number | null;
  /** The listed path of the bought route, without the query. Null in a row from before routes were stored. */
  readonly route: string | null;
  /** The protocol that presented the payment. Null in a row from before this was stored. */
  readonly protocol: string | null;
}

/** One income: a settled payment, or a claim through our own routes. */
export interface Income {
  readonly rail: 'usdc' | 'lightning';
  /** Null on Lightning, where the payment hash is the only id. */
  readonly id: string | null;
  /**
   * Base units of USDC, or millisatoshis. Of a sale in a channel what was charged, also when it brought a larger
   * deposit.
   */
  readonly amount: bigint;
  readonly at: number;
  /** The transaction's hash, or the payment hash. Of a voucher, which has no transaction, the sale's nonce. */
  readonly hash: Uint8Array;
  readonly block: number | null;
  /** As in `ListedPayment`. */
  readonly route: string | null;
  /** The protocol that presented the payment. Null in a row from before this was stored. */
  readonly protocol: string | null;
}

/** The operator's reports over a ledger in either database. They write nothing and block no running service. */
export interface LedgerReports {
  status(): Promise<LedgerStatus>;
  /** Newest first; null is any state. */
  list(state: PaymentState | null, limit: number): Promise<ListedPayment[]>;
  /**
   * Income from `from` (inclusive) to `to` (exclusive), oldest first. It is read row by row, because a ledger may not
   * fit into memory.
   */
  income(from: number, to: number): AsyncIterable<Income>;
  close(): Promise<void>;
}

/** The states of a payment, in the order in which a status lists them. */
export const PAYMENT_STATES: readonly PaymentState[] = ['reserved', 'settling', 'unknown', 'settled', 'failed'];
/** The states of a claim through our own routes, in the order in which a status lists them. */
export const CLAIM_STATES = ['claimed', 'delivered'] as const;
