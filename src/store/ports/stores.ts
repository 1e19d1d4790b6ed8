import type { BookStore } from './books.ts';
import type { ChannelStore } from './channels.ts';
import type { LightningStore } from './lightning.ts';
import type { MarketStore } from './market.ts';
import type { LedgerStore, SettledReads } from './payments.ts';

/** What rails in USDC keep and read beside their payments. */
export interface RailStores {
  readonly channels: ChannelStore;
  readonly transfers: GatewayTransferStore;
  readonly spending: RelayerSpendingStore;
  readonly settled: SettledReads;
}

/** All stores of the ledger's database, for either database. */
export interface LedgerStores extends RailStores {
  readonly payments: LedgerStore;
  readonly lightning: LightningStore;
  readonly selfTests: SelfTestStore;
  readonly market: MarketStore;
  readonly catalogue: CatalogueStore;
  readonly keys: ServiceKeyStore;
  readonly providers: ProviderNotes;
  readonly refusals: RefusalStore;
  readonly books: BookStore;
  /** Rejects when the ledger cannot be read, and when its database accepts no writes. */
  ping(): Promise<void>;
  /**
   * Resolves with the reason when the stores will take no more writes before the service is started again; else never.
   */
  readonly syncFailed: Promise<Error>;
  /** Finishes earlier calls. Afterwards every store rejects. */
  close(): Promise<void>;
}

/** The last catalogue that was read without a failure. */
export interface CatalogueCopy {
  /** Unix milliseconds. */
  readonly readAt: number;
  /** JSON text; only its writer knows the form. */
  readonly entries: string;
}

/** Keeps the last good copy of the third-party catalogue. The copy is on disk when `save` resolves. */
export interface CatalogueStore {
  load(): Promise<CatalogueCopy | null>;
  /**
   * When the stored copy was read, without reading it; null while there is none. Another process may have stored it.
   */
  readAt(): Promise<number | null>;
  save(copy: CatalogueCopy): Promise<void>;
}

/** One run of the self-test: a call bought through the public URL, and one that must fail without charging. */
export interface SelfTestRun {
  /** When it began, in Unix milliseconds. */
  readonly at: number;
  /** True when the call was answered, the chain holds exactly its payment, and the failing call cost nothing. */
  readonly ok: boolean;
  /** The whole paid call, from the first request to the last byte; null when it was not answered. */
  readonly latencyMs: number | null;
  /** The transaction hash in the receipt, 32 bytes. */
  readonly transaction: Uint8Array | null;
  /** Whether the failing call cost nothing; null when this could not be checked. */
  readonly notCharged: boolean | null;
  /** Why it was not ok, as a short code; null when it was. */
  readonly reason: string | null;
}

/** Reader of the results. */
export interface SelfTestReads {
  /** Newest first. */
  recent(limit: number): Promise<SelfTestRun[]>;
  /** The newest run whose failing call was checked for a charge. */
  lastChecked(): Promise<SelfTestRun | null>;
  /** Runs that began at `sinceMs` or later, and how many of them were ok. */
  countSince(sinceMs: number): Promise<{ readonly runs: number; readonly ok: number }>;
}

/** The self-test's results. When `record` resolves, the run is on disk, and readers in any process see it. */
export interface SelfTestStore extends SelfTestReads {
  /** Adds a run and forgets those that began before `keepFromMs`, in one step. */
  record(run: SelfTestRun, keepFromMs: number): Promise<void>;
}

/** Random keys that are made once for a ledger. Every instance and every restart gets the same. */
export interface ServiceKeyStore {
  /**
   * Returns the key of this name. Where the ledger has none yet, `fresh` becomes the key; of concurrent calls one wins.
   */
  keep(name: string, fresh: Uint8Array): Promise<Uint8Array>;
}

/** Costs and number of payments of one relayer transaction, or of a whole day. */
export interface Spending {
  readonly wei: bigint;
  /** The part of `wei` that was spent on settling nothing. */
  readonly failedWei: bigint;
  readonly gas: bigint;
  readonly transactions: number;
  readonly payments: number;
}

/** The relayer's spending by UTC day (`YYYY-MM-DD`). When `add` resolves, the change is on disk. */
export interface RelayerSpendingStore {
  add(day: string, spending: Spending): Promise<void>;
  /** Zeros for a day on which nothing was spent. */
  spentOn(day: string): Promise<Spending>;
}

/** The spending of a day without a transaction. */
export const NOTHING_SPENT: Spending = { wei: 0n, failedWei: 0n, gas: 0n, transactions: 0, payments: 0 };

/** A transfer whose outcome is not known yet. */
export interface DueTransfer {
  readonly paymentId: string;
  /** 16 bytes, a UUID. */
  readonly transferId: Uint8Array;
  /** How often the transfer was checked. */
  readonly checks: number;
}

/** The result of one check of a transfer. `nextCheckAt` (Unix milliseconds) is null when no more checks are needed. */
export interface TransferNote {
  readonly status: string | null;
  /** The batch's transaction hash, 32 bytes, shared by its transfers. */
  readonly transaction: Uint8Array | null;
  readonly nextCheckAt: number | null;
}

/** A transfer as the last check left it. */
export interface KnownTransfer extends Omit<TransferNote, 'nextCheckAt'> {
  /** Whether it will be checked again. */
  readonly isOpen: boolean;
}

/**
 * The Gateway's transfers of settled payments. A row is inserted in the same transaction as the payment's move to
 * `settled`.
 */
export interface GatewayTransferStore {
  /** Transfers whose check is due at `now`, the longest due first. */
  due(now: number, limit: number): Promise<DueTransfer[]>;
  note(paymentId: string, note: TransferNote): Promise<void>;
  /** What is known of a payment's transfer; null for a payment without one. */
  get(paymentId: string): Promise<KnownTransfer | null>;
  /** The batch's transaction behind a payment, or null while it is not known. */
  batchOf(paymentId: string): Promise<Uint8Array | null>;
  /** Ids of the payments that a batch's transaction holds, at most `limit`. */
  paymentsIn(transaction: Uint8Array, limit: number): Promise<string[]>;
}

/**
 * What one RPC provider said against others. Times in Unix milliseconds. `question`, `said` and `others` are short
 * texts, which the caller bounds to 500 characters.
 */
export interface ProviderNote {
  readonly host: string;
  /** `apart`: others agreed against this provider. `disputed`: two contradict each other, and no third has decided. */
  readonly kind: 'apart' | 'disputed';
  readonly question: string;
  readonly said: string;
  readonly others: string;
  readonly sinceMs: number;
  readonly untilMs: number;
}

/**
 * Which RPC providers have contradicted others, for all instances and over restarts. When a write resolves, it is on
 * disk.
 */
export interface ProviderNotes {
  /** The notes that have not expired at `nowMs`, oldest first. */
  list(nowMs: number): Promise<ProviderNote[]>;
  /**
   * Keeps a note. There is one for each host, kind and question: a later one replaces its texts and its end, and keeps
   * the older `sinceMs`. Deletes the notes that have expired at the note's `sinceMs`.
   */
  put(note: ProviderNote): Promise<void>;
  /** Ends the disputes over this question. What is set apart stays so. */
  agree(question: string): Promise<void>;
  /** Deletes all notes of a host, and returns their number. */
  trust(host: string): Promise<number>;
}

/** Calls whose payment was presented and that got no answer, by the code that they got. */
export interface RefusedCalls {
  readonly code: string;
  readonly count: number;
  /** Those of them that are recent. */
  readonly recentCount: number;
}

/** Refused calls by hour and code. When `add` resolves, the counts are on disk. */
export interface RefusalStore {
  /**
   * Adds to what this hour has, by code. `hourMs` is its start. Forgets hours that began before `keepFromMs`, in one
   * step.
   */
  add(hourMs: number, counts: ReadonlyMap<string, number>, keepFromMs: number): Promise<void>;
  /** Of the hours that began at `fromMs` or later, the highest count first. `recentMs`: since when they are recent. */
  since(fromMs: number, recentMs: number): Promise<RefusedCalls[]>;
}
