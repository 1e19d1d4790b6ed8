/** The collector's state, for endpoints, health and metrics. Every field is current and costs nothing to read. */
export interface CollectorStatus {
  /** The newest block that a provider reported; null before the first answer. */
  readonly head: { readonly number: number; readonly hash: `0x${string}`; readonly at: number } | null;
  /** When the collector saw the head move to a higher block, Unix milliseconds. Survives restarts. */
  readonly headAdvancedMs: number | null;
  /** When a provider last reported its head, Unix milliseconds. */
  readonly headCheckedMs: number | null;
  /** The newest block that is stored whole. */
  readonly collected: { readonly number: number; readonly at: number } | null;
  /** The oldest block that was ever stored whole. Its row may be rolled up already. */
  readonly firstCollected: number | null;
  /** Blocks stored whole, the rolled-up ones included. */
  readonly blocksCollected: number;
  /** Mean over the newest blocks; null before two of them are known. */
  readonly blockTimeSeconds: number | null;
  /** The window of past blocks that a first start fills, in whole blocks. */
  readonly backfill: {
    /** 0 to 1; 1 when the window is complete. */
    readonly share: number;
    /** Mean over the last minute; 0 when nothing is being filled. */
    readonly blocksPerSecond: number;
    /** Null while the rate is unknown; 0 when complete. */
    readonly secondsLeft: number | null;
    /** The share for base fees and utilisation, which are filled first, and the share for logs (trades, token events). */
    readonly feesShare: number;
    readonly logsShare: number;
  };
  /** Grows with every commit. An answer made from the database is valid until then. */
  readonly version: number;
  /** Why the last commit failed, such as a full disk. Null after one that succeeded. */
  readonly fault: string | null;
  /** Since start. */
  readonly counters: {
    /** HTTP requests to providers. */
    readonly requests: number;
    /** Contradictory answers by reason. Each was refused and asked for again. */
    readonly refused: Readonly<Record<string, number>>;
    /** Parent hashes that did not fit, which deterministic finality rules out: alarms. */
    readonly reorgs: number;
    /** Blocks replaced because of them. */
    readonly replacedBlocks: number;
    /** Requests that no provider answered. */
    readonly failures: number;
  };
}

/** The part of the collector that the rest of the service uses. */
export interface CollectorView {
  status(): CollectorStatus;
}

/** Replaces a collector that is switched off: nothing is known. */
export const NO_COLLECTOR: CollectorView = {
  status: () => ({
    head: null,
    headAdvancedMs: null,
    headCheckedMs: null,
    collected: null,
    firstCollected: null,
    blocksCollected: 0,
    blockTimeSeconds: null,
    backfill: { share: 0, blocksPerSecond: 0, secondsLeft: null, feesShare: 0, logsShare: 0 },
    version: 0,
    fault: null,
    counters: { requests: 0, refused: {}, reorgs: 0, replacedBlocks: 0, failures: 0 },
  }),
};
