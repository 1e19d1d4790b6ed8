/** A token whose trades are collected. */
export interface WatchedToken {
  readonly symbol: string;
  /** Lower case. */
  readonly address: `0x${string}`;
}

/** An RPC endpoint as it may be shown. */
export interface ShownEndpoint {
  readonly name: string;
  /** Scheme and host only, because keys live in paths. */
  readonly url: string;
}

/** What `/v1/health` calls well. */
export interface HealthLimits {
  readonly stalledSeconds: number;
  readonly lagBlocks: number;
  readonly lagSeconds: number;
}

/** What endpoints over collected data take from the configuration. */
export interface CollectedSettings {
  readonly watched: readonly WatchedToken[];
  readonly endpoints: readonly ShownEndpoint[];
  readonly health: HealthLimits;
  /** The chain's lowest base fee, where the operator knows it. */
  readonly floorWei: bigint | null;
  /** Whether a distributor's payouts are looked for. */
  readonly hasDistributor: boolean;
}
