import type { Intent } from '../../settler.ts';

/** One intent on its way through the relayer. */
export interface Job {
  readonly intent: Intent;
  /** When it came, and when it last joined the queue. */
  readonly sinceMs: number;
  queuedMs: number;
  ended: boolean;
  /** How many payments its transaction may hold: half as many after a batch that did not pay it, 1 for payers with code. */
  maxGroup: number;
  /** The relayer's nonces under which a node may have got it. */
  readonly nonces: Set<number>;
  /** Whether its payer was ever seen with code. */
  hasCode: boolean;
  /** It was in a batch that used up its gas. */
  wasInFailedBatch: boolean;
  /** Only a mined transaction can tell its end: it is sent alone, whatever a simulation says. */
  mustSend: boolean;
  /** How often in a row its payer could not be read. */
  unread: number;
  /** Since when the chain does not tell what became of it; such a job is looked up before it is sent again. */
  unresolvedMs: number | null;
}

/** A job of which nothing is known yet. */
export function newJob(intent: Intent, nowMs: number): Job {
  return {
    ...{ intent, sinceMs: nowMs, queuedMs: nowMs, ended: false },
    // What an account with code does to a batch, it does to the others in it.
    ...{ maxGroup: intent.hasCode ? 1 : Number.MAX_SAFE_INTEGER, nonces: new Set(), unread: 0, unresolvedMs: null },
    ...{ hasCode: intent.hasCode, wasInFailedBatch: false, mustSend: false },
  };
}
