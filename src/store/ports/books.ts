import type { Payment } from './payments.ts';

/** Up to where the books were compared with the chain. */
export interface BookSpan {
  /** Every row that had ended before was compared, or stands as `unread`. Unix milliseconds. */
  readonly endedMs: number;
  /** The last block whose transfers to the seller were counted; null before the first. */
  readonly block: number | null;
}

/** Something that the ledger has and that the chain could not be asked for (`unread`), or does not show (`missing`). */
export interface BookEntry {
  readonly rail: string;
  readonly kind: 'unread' | 'missing';
  /** A payment's id, or a name that the rail gives to something else. */
  readonly item: string;
  /** What the chain lacks, in base units of the token; 0 where it could not be asked. */
  readonly amount: bigint;
  readonly detail: string;
  /** When it was first found, in Unix milliseconds. */
  readonly notedMs: number;
  /** When the operator accepted this amount. Null while it counts. */
  readonly acceptedMs: number | null;
}

/** The key of an entry in one network's books. */
export type BookKey = Pick<BookEntry, 'rail' | 'kind' | 'item'>;

/** What one step of a comparison found. */
interface BookChange {
  /**
   * Entries to keep. An entry of the same key keeps the older `notedMs`. It stays accepted unless `amount` has grown;
   * `acceptedMs` of the given one is not read.
   */
  readonly found: readonly Omit<BookEntry, 'acceptedMs'>[];
  /** Entries that are over. */
  readonly ended: readonly BookKey[];
  readonly checked?: BookSpan;
}

/**
 * The books against the chain: one state for all instances, and over restarts. When a write resolves, it is on disk.
 */
export interface BookStore {
  /** Null before the first comparison on this network. */
  checked(network: string): Promise<BookSpan | null>;
  /** Entries of this kind, the oldest first, at most `limit`. */
  entries(network: string, kind: BookEntry['kind'], limit: number): Promise<BookEntry[]>;
  /** Makes all changes in one step. */
  record(network: string, change: BookChange): Promise<void>;
  /** Accepts every `missing` entry of every network. Returns those that were not accepted before, oldest first. */
  accept(nowMs: number): Promise<BookEntry[]>;
  /**
   * Settled payments that ended from `from` (inclusive) to `to` (exclusive), in the order of (endedAt, id), at most
   * `limit`. With `after`: only later ones. Sales by vouchers are left out: they have no transaction.
   */
  settledBetween(
    network: string,
    span: { readonly from: number; readonly to: number },
    limit: number,
    after?: { readonly endedAt: number; readonly id: string },
  ): Promise<Payment[]>;
}
