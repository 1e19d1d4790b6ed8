import { bytesToHex } from '../../../lib/hex.ts';
import type { OperationOutcome } from '../../operation.ts';
import type { Outcome } from '../../settler.ts';
import { ban } from '../../usdc/payer-reads.ts';
import type { Turn } from './events.ts';
import type { Job, OperationJob } from './job.ts';
import { judgeUnresolved, type Ruling } from './judge.ts';

/** Milliseconds after which a job is tried again when its failure may pass. */
export const RETRY_MS = 500;

/** Whether the job is in a transaction of ours that may still be mined. */
export function isPending({ state }: Turn, job: Pick<Job, 'nonces'>): boolean {
  return [...job.nonces].some((nonce) => !state.nonces.isPast(nonce));
}

/** Ends a job; the first outcome counts. */
export function finish({ state, effects }: Turn, job: Job, outcome: Outcome): void {
  if (job.ended) return;
  job.ended = true;
  if (state.open.delete(job) && job.intent.call) state.openCalls--;
  effects.push({ kind: 'end', job, outcome });
}

/** Ends an operation; the first outcome counts. */
export function finishOperation({ state, effects }: Turn, job: OperationJob, outcome: OperationOutcome): void {
  if (job.ended) return;
  job.ended = true;
  state.openOperations.delete(job);
  effects.push({ kind: 'endOperation', job, outcome });
}

/** Puts jobs at the head of the queue. */
export function requeue({ state, now }: Turn, jobs: readonly Job[]): void {
  const waiting = jobs.filter((job) => !job.ended);
  for (const job of waiting) job.queuedMs = now.nowMs;
  state.queue.unshift(...waiting);
}

export function requeueLater({ effects }: Turn, jobs: readonly Job[]): void {
  if (jobs.length > 0) effects.push({ kind: 'wait', ms: RETRY_MS, timer: { name: 'queue', jobs } });
}

export function banPayer({ state, now }: Turn, { intent }: Job): void {
  ban(state.bans, bytesToHex(intent.authorization.from), now.nowMs);
}

/**
 * Carries out verdicts in their order. Jobs that are sent alone are queued together, and so are jobs that wait. Returns the jobs whose payers must be
 * read again.
 */
export function apply(turn: Turn, rulings: readonly Ruling[]): Job[] {
  const [reread, alone, later]: [Job[], Job[], Job[]] = [[], [], []];
  for (const { job, verdict } of rulings) {
    if (verdict.kind === 'end') finish(turn, job, verdict.outcome);
    else if (verdict.kind === 'ban') banPayer(turn, job);
    else if (verdict.kind === 'lookUp')
      turn.effects.push({ kind: 'lookUp', job, atBlock: verdict.atBlock, for: 'alone' });
    else if (verdict.kind === 'wait') {
      job.unresolvedMs ??= turn.now.nowMs;
      later.push(job);
    } else if (verdict.kind === 'sendAlone') {
      job.mustSend = true;
      job.maxGroup = 1;
      alone.push(job);
    } else {
      job.maxGroup = verdict.maxGroup;
      if (verdict.gasExhausted) job.wasInFailedBatch = true;
      reread.push(job);
    }
  }
  requeue(turn, alone);
  requeueLater(
    turn,
    later.filter((job) => !job.ended),
  );
  return reread;
}

/** Holds jobs whose end the chain cannot show now. */
export function holdUnresolved(turn: Turn, jobs: readonly Job[]): void {
  apply(
    turn,
    jobs.map((job) => judgeUnresolved(job, turn.now.nowMs)),
  );
}

/** Frees the sender for the next round. */
export function endRound({ state }: Turn): void {
  state.sender = 'idle';
  state.round = null;
}
