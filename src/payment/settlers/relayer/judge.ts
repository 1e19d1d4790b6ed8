import { hexToBytes } from '../../../lib/hex.ts';
import { paymentsIn, type Receipt } from '../../evm/evidence.ts';
import type { Verdict as Found } from '../../settler.ts';
import { type Outcome, REVERTED } from '../../settler.ts';
import type { Transaction } from './flight.ts';
import type { Job } from './job.ts';

/**
 * Of the 300,000 gas that a lone settlement is given a plain account uses 91,077, and a wallet of several owners some 130,000. What uses this much
 * makes its payment cost the relayer twice what others cost.
 */
const DEAR_PERCENT = 60n;
/** A batch that used this much of its gas has run out of it. */
const EXHAUSTED_PERCENT = 90n;
/** Logs may be a moment behind the state; after this the job is left to reconciliation. */
const UNRESOLVED_MS = 5000;

/** What is to be done with a job. */
export type Verdict =
  | { readonly kind: 'end'; readonly outcome: Outcome }
  /** Its payer is not sold to for a day. */
  | { readonly kind: 'ban' }
  /** Read once more, and queued if unused, with at most so many others. */
  | { readonly kind: 'requeue'; readonly maxGroup: number; readonly gasExhausted: boolean }
  /** The logs up to this block tell its end. */
  | { readonly kind: 'lookUp'; readonly atBlock: number }
  /** A third party may have it, so that only a mined transaction ends it: queued at once, alone, sent whatever a simulation says. */
  | { readonly kind: 'sendAlone' }
  /** The chain does not tell of it now: looked at again after a pause, not sent. */
  | { readonly kind: 'wait' };

/** A verdict on one job. */
export interface Ruling {
  readonly job: Job;
  readonly verdict: Verdict;
}

interface JudgedReceipt {
  readonly rulings: readonly Ruling[];
  /** How many payments of it were paid. */
  readonly paid: number;
  /** A batch that left some unpaid, and used up its gas. */
  readonly gasExhausted: boolean;
}

/**
 * A transaction of ours was mined. Each job by its own logs, never by the call's success:
 * 1. the transfer is there: settled;
 * 2. it is not, in a batch: what is unused tries again with half as many, so that whatever failed the batch ends up alone;
 * 3. it is not, alone: the logs up to its block tell who used it.
 * Alone, one that used more than DEAR_PERCENT of its gas is banned, paid or not.
 */
export function judgeReceipt({ jobs, gas }: Transaction, receipt: Receipt, usdc: string): JudgedReceipt {
  const block = Number(receipt.blockNumber);
  const transaction = hexToBytes(receipt.transactionHash);
  const paidIn = paymentsIn(receipt, usdc);
  const rulings: Ruling[] = [];
  const unpaid: Job[] = [];
  for (const job of jobs) {
    const amount = paidIn(job.intent.authorization);
    if (amount === null) unpaid.push(job);
    else
      rulings.push({ job, verdict: { kind: 'end', outcome: { kind: 'settled', transaction, block, paid: amount } } });
  }
  const paid = jobs.length - unpaid.length;
  const gasUsed = BigInt(receipt.gasUsed);
  const [first] = jobs;
  if (jobs.length === 1 && first) {
    if (gasUsed * 100n >= gas * DEAR_PERCENT) rulings.push({ job: first, verdict: { kind: 'ban' } });
    if (paid === 0 && !first.ended) rulings.push({ job: first, verdict: { kind: 'lookUp', atBlock: block } });
    return { rulings, paid, gasExhausted: false };
  }
  const waiting = unpaid.filter((job) => !job.ended);
  const gasExhausted = unpaid.length > 0 && gasUsed * 100n >= gas * EXHAUSTED_PERCENT;
  const maxGroup = Math.max(1, Math.ceil(waiting.length / 2));
  for (const job of waiting) rulings.push({ job, verdict: { kind: 'requeue', maxGroup, gasExhausted } });
  return { rulings, paid, gasExhausted };
}

/** The chain does not tell of a job now: it waits, and after UNRESOLVED_MS is left to reconciliation. */
export function judgeUnresolved(job: Job, nowMs: number): Ruling {
  const isTooLong = nowMs - (job.unresolvedMs ?? nowMs) > UNRESOLVED_MS;
  return { job, verdict: isTooLong ? { kind: 'end', outcome: { kind: 'unknown' } } : { kind: 'wait' } };
}

/**
 * A job of which a transaction of ours was mined by a block without paying it, as the logs up to that block say. What is unused there has failed,
 * unless another transaction of ours with it may still be mined (`isPending`): no flight follows that one, because a node refused it or it was
 * given back. So the job is sent again, under the lowest free nonce, until the chain is past all of its nonces.
 */
export function judgeLookUp(
  job: Job,
  found: Found,
  { nowMs, isPending }: { nowMs: number; isPending: boolean },
): Ruling {
  if (found.kind === 'unknown') return judgeUnresolved(job, nowMs);
  if (found.kind !== 'open') return { job, verdict: { kind: 'end', outcome: found } };
  if (isPending) return { job, verdict: { kind: 'sendAlone' } };
  return { job, verdict: { kind: 'end', outcome: { kind: 'failed', reason: REVERTED } } };
}

/** What a job that is unused and would not go through waits for. */
interface Shown {
  /** Whether it is in a transaction of ours that may still be mined. */
  readonly isPending: boolean;
  /** At this block, every other transaction of ours was mined, or never will be. */
  readonly provenBlock: number;
}

/**
 * A job that a look before sending found not to go through, though it is unused. What no third party can have ends without a transaction: it was
 * shown to no node, or only in transactions that were mined without it. Nodes differ in height: that they were is looked up at a block that
 * has them.
 */
export function judgeRefused({ intent, nonces }: Job, { isPending, provenBlock }: Shown): Verdict {
  if (intent.broadcast || isPending) return { kind: 'sendAlone' };
  if (nonces.size === 0) return { kind: 'end', outcome: { kind: 'failed', reason: REVERTED } };
  return { kind: 'lookUp', atBlock: provenBlock };
}

/**
 * Whether a lone transaction that moved nothing is its payer's doing, by what is known so far: an account with code passed a simulation, so it is.
 * A plain account that did not hold the price at that block, or whose balance cannot be read, is not banned: the purchase counts the failure. One
 * that held it is, if the token works: `ask token`.
 */
export function judgePayer(job: Job, seen: { hasCode: boolean } | { balance: bigint | null }): 'ban' | 'no' | 'ask' {
  if ('hasCode' in seen) return job.hasCode || seen.hasCode ? 'ban' : 'ask';
  return seen.balance !== null && seen.balance >= job.intent.authorization.value ? 'ask' : 'no';
}

/** Whether a job's payer has failed a batch and would fail again: the batch was its doing. */
export function isGriefer({ wasInFailedBatch, hasCode }: Job): boolean {
  return wasInFailedBatch && hasCode;
}
