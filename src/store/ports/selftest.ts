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
