import type { Intent, Outcome } from '../../settler.ts';
import type { Price } from './fees.ts';
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
  /** The relayer's nonces under which it was handed to a node. */
  readonly nonces: Set<number>;
  /** Whether its payer was ever seen with code. */
  hasCode: boolean;
  /** It was in a batch whose gas was all burnt. */
  spoilt: boolean;
  /** Only a mined transaction can tell its end: it is sent alone, whatever a simulation says. */
  mustSend: boolean;
  /** How often in a row its payer could not be read. */
  unread: number;
  /** Since when the chain does not tell of it; such a job is looked at before it is sent again. */
  untoldMs: number | null;
}

/** A job that nothing is known of yet. */
export function newJob(intent: Intent, nowMs: number, end: Job['end']): Job {
  return {
    ...{ intent, end, sinceMs: nowMs, queuedMs: nowMs, ended: false },
    // What an account with code does to a batch, it does to the others in it.
    ...{ maxGroup: intent.hasCode ? 1 : Number.MAX_SAFE_INTEGER, nonces: new Set(), unread: 0, untoldMs: null },
    ...{ hasCode: intent.hasCode, spoilt: false, mustSend: false },
  };
}

/** One signing of a slot: what was sent under its nonce, and for whom. */
export interface Version extends Signed {
  readonly jobs: readonly Job[];
  readonly gas: bigint;
  readonly price: Price;
}

/** A nonce of the relayer's that is in use, with everything that was sent under it: only one of them can be mined. */
export interface Slot {
  readonly nonce: number;
  /** Oldest first, never empty. */
  readonly versions: Version[];
  /** When it was last sent, null before the first time, and how often because it was late. */
  atMs: number | null;
  rescues: number;
}

/** The version that was signed last. */
export function newest(slot: Slot): Version {
  const version = slot.versions.at(-1);
  if (!version) throw new Error('a slot without a transaction');
  return version;
}

/** Everybody who is in any version of a slot. */
export function jobsOf(slot: Slot): Job[] {
  return [...new Set(slot.versions.flatMap(({ jobs }) => jobs))];
}
