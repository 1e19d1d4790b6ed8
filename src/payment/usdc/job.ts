import type { Intent, Outcome } from './settler.ts';
import type { Signed } from './wallet.ts';

/** One intent on its way through the relayer. */
export interface Job {
  readonly intent: Intent;
  /** When it came, and when it last joined the queue. */
  readonly sinceMs: number;
  queuedMs: number;
  readonly end: (outcome: Outcome) => void;
  ended: boolean;
  /** With how many others it may share a transaction: halved after a batch in which it got nothing, 1 for payers with code. */
  maxGroup: number;
  /** Whether a transaction with it was ever handed to a node. */
  broadcast: boolean;
}

/** One signing of a slot: what was sent under its nonce, and for whom. */
export interface Version extends Signed {
  readonly jobs: readonly Job[];
  readonly gas: bigint;
  readonly maxFeePerGas: bigint;
}

/** A nonce of the relayer's that is in use, with everything that was sent under it: only one of them can be mined. */
export interface Slot {
  readonly nonce: number;
  /** Oldest first, never empty. */
  readonly versions: Version[];
  /** When the newest was signed. */
  atMs: number;
}

/** The version that was sent last. */
export function newest(slot: Slot): Version {
  const version = slot.versions.at(-1);
  if (!version) throw new Error('a slot without a transaction');
  return version;
}
