/** One run of the self-test: a call bought through the public URL, and one that must fail without charging. */
export interface SelfTestRun {
  /** When it began, in Unix milliseconds. */
  readonly at: number;
  /** The call was answered, the chain holds exactly its payment, and the failing call cost nothing. */
  readonly ok: boolean;
  /** The whole paid call, from the first request to the last byte; null when it was not answered. */
  readonly latencyMs: number | null;
  /** The hash that the receipt named, 32 bytes. */
  readonly transaction: Uint8Array | null;
  /** Whether the failing call cost nothing; null when that could not be seen. */
  readonly notCharged: boolean | null;
  /** Why it was not ok, as a short code; null when it was. */
  readonly reason: string | null;
}

/** What is read of the results. */
export interface SelfTestReads {
  /** Newest first. */
  recent(limit: number): Promise<SelfTestRun[]>;
  /** The newest run in which it was seen whether the failing call cost anything. */
  lastChecked(): Promise<SelfTestRun | null>;
  /** Runs that began at `sinceMs` or later, and how many of them were ok. */
  countSince(sinceMs: number): Promise<{ readonly runs: number; readonly ok: number }>;
}

/** The self-test's results: what `record` resolves with is on disk, and readers in any process see it. */
export interface SelfTestStore extends SelfTestReads {
  /** Adds a run and forgets those that began before `keepFromMs`, in one step. */
  record(run: SelfTestRun, keepFromMs: number): Promise<void>;
}
