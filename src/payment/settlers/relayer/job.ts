import type { Operation } from '../../operation.ts';
import type { Intent } from '../../settler.ts';

/** One intent in the relayer. */
export interface Job {
  readonly intent: Intent;
  /** When the intent was submitted, and when it last joined the queue, in Unix milliseconds. */
  readonly sinceMs: number;
  queuedMs: number;
  ended: boolean;
  /** How many payments its transaction may hold. Halved after a batch that did not settle it. 1 for payers with code. */
  maxGroup: number;
  /** The relayer's nonces under which it may have been sent to a node. */
  readonly nonces: Set<number>;
  /** Whether its payer was ever seen with code. */
  hasCode: boolean;
  /** Whether it was in a batch that used up its gas. */
  wasInFailedBatch: boolean;
  /** Whether only a mined transaction can show its end. It is then sent alone, even if a simulation refuses it. */
  mustSend: boolean;
  /** How often in a row the read of its payer failed. */
  unread: number;
  /** Since when the chain cannot show its end, in Unix milliseconds. Such a job is looked up before it is sent again. */
  unresolvedMs: number | null;
}

/** Makes the job of a new intent. */
export function newJob(intent: Intent, nowMs: number): Job {
  return {
    ...{ intent, sinceMs: nowMs, queuedMs: nowMs, ended: false },
    // An account with code can fail the other payments of its batch.
    ...{ maxGroup: intent.hasCode ? 1 : Number.MAX_SAFE_INTEGER, nonces: new Set(), unread: 0, unresolvedMs: null },
    ...{ hasCode: intent.hasCode, wasInFailedBatch: false, mustSend: false },
  };
}

/** One operation in the relayer. It is never in a transaction with anything else. */
export interface OperationJob {
  readonly operation: Operation;
  /** When it last joined the queue, in Unix milliseconds. */
  queuedMs: number;
  ended: boolean;
  /** The relayer's nonces under which it may have been sent to a node. */
  readonly nonces: Set<number>;
  /** Whether only a mined transaction can show its end. It is then sent even if a simulation refuses it. */
  mustSend: boolean;
  /** Since when the chain cannot be read about it, in Unix milliseconds. */
  unresolvedMs: number | null;
}

/** Why an operation is looked up: a simulation refused it, a transaction with it was mined without its event, or its flight was given back. */
export type Doubt = { readonly after: 'refused' | 'mined'; readonly reason: string } | { readonly after: 'lost' };

/** Makes the job of a new operation. */
export function newOperationJob(operation: Operation, nowMs: number): OperationJob {
  return { operation, queuedMs: nowMs, ended: false, nonces: new Set(), mustSend: false, unresolvedMs: null };
}
