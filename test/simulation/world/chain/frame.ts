import type { Hex } from './keys.ts';
import type { View } from './state.ts';

export interface Log {
  readonly address: Hex;
  readonly topics: readonly Hex[];
  readonly data: Hex;
}

/** What contracts see of the block and the transaction that they run in. */
export interface Env {
  readonly view: View;
  readonly block: number;
  /** Unix seconds. */
  readonly timestamp: number;
  /** Wei; 0 in calls that name none. */
  readonly gasPrice: bigint;
  readonly origin: Hex;
  /** The service's own account, which griefers know. */
  readonly relayer: Hex;
  readonly logs: Log[];
  log(address: Hex, topics: readonly Hex[], value: bigint | null): void;
}

/** One call of a contract; `used` grows while it runs. */
export interface Frame {
  readonly from: Hex;
  readonly to: Hex;
  readonly data: Hex;
  readonly gas: number;
  used: number;
}

export interface CallResult {
  readonly ok: boolean;
  readonly data: Hex;
  readonly gasUsed: number;
  /** Why it reverted; empty where it did not. */
  readonly why: string;
}
