/** A token whose trades are collected. */
export interface WatchedToken {
  readonly symbol: string;
  /** Lower case. */
  readonly address: `0x${string}`;
}

/** An RPC endpoint as answers show it. */
export interface ShownEndpoint {
  readonly name: string;
  /** Scheme and host only, because a path may hold an API key. */
  readonly url: string;
}

/** The limits within which `/v1/health` reports `ok`. */
export interface HealthLimits {
  readonly stalledSeconds: number;
  readonly lagBlocks: number;
  readonly lagSeconds: number;
}

/** The part of the configuration that endpoints over collected data need. */
export interface CollectedSettings {
  readonly watched: readonly WatchedToken[];
  readonly endpoints: readonly ShownEndpoint[];
  readonly health: HealthLimits;
  /** The chain's lowest base fee; null when the operator did not configure it. */
  readonly floorWei: bigint | null;
  /** True when the collector looks for a distributor's payouts. */
  readonly hasDistributor: boolean;
}
