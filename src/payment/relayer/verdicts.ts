import { bytesToHex, hexToBytes } from '../../lib/hex.ts';
import { type Found, type OperationOutcome, type Outcome, REVERTED } from '../settler.ts';
import { paymentsIn, type TransactionReceipt } from '../usdc/evidence.ts';
import { ban } from '../usdc/payer-reads.ts';
import type { After, Reading, Sorting, Turn } from './state.ts';
import type { Job, OperationJob, Transaction } from './transactions.ts';

// What the chain's answers mean for a job, and what becomes of it: a transaction's logs count, never a call's success.
// The judges are pure; rulings are carried out, doubtful jobs sorted, suspected payers checked.

/** Percent of the limit, 300,000 gas: twice what a plain account uses (91,077). A wallet of several owners: 130,000. */
const DEAR_PERCENT = 60n;
/** Percent of its gas that a batch has run out at. */
const EXHAUSTED_PERCENT = 90n;
/** Milliseconds, because logs may lag shortly behind the state. After that the job is left to reconciliation. */
export const UNRESOLVED_MS = 5000;

type Verdict =
  | { readonly kind: 'end'; readonly outcome: Outcome }
  /** Its payer cannot buy for a day. */
  | { readonly kind: 'ban' }
  /** Its payer is read again. If unused, it is queued for a group of at most `maxGroup`. */
  | { readonly kind: 'requeue'; readonly maxGroup: number; readonly gasExhausted: boolean }
  /** The logs up to this block show its end. */
  | { readonly kind: 'lookUp'; readonly atBlock: number }
  /** A third party may hold it, so only a mined transaction ends it. Queued at once to go alone, even if refused. */
  | { readonly kind: 'sendAlone' }
  /** The chain cannot show its end now. It is looked up again after a pause and not sent. */
  | { readonly kind: 'wait' };

export interface Ruling {
  readonly job: Job;
  readonly verdict: Verdict;
}

interface JudgedReceipt {
  readonly rulings: readonly Ruling[];
  readonly paid: number;
  /** A batch left a payment unpaid and used up its gas. */
  readonly gasExhausted: boolean;
}

/**
 * By each job's own logs. Unpaid in a batch: again in half the group, so that the culprit ends up alone. Unpaid alone:
 * the logs show who used it. Alone with DEAR_PERCENT of its gas used: a ban, paid or not.
 */
export function judgeReceipt({ jobs, gas }: Transaction, receipt: TransactionReceipt, usdc: string): JudgedReceipt {
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

/** The chain cannot show the job's end now. It waits; after UNRESOLVED_MS it is left to reconciliation. */
export function judgeUnresolved(job: Job, nowMs: number): Ruling {
  const isTooLong = nowMs - (job.unresolvedMs ?? nowMs) > UNRESOLVED_MS;
  return { job, verdict: isTooLong ? { kind: 'end', outcome: { kind: 'unknown' } } : { kind: 'wait' } };
}

/**
 * A job that our transaction did not pay, by the logs. If unused it has failed, unless another of ours may still be
 * mined (`isPending`) that no flight follows: then it is sent until the chain is past its nonces.
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

interface Shown {
  /** It is in a transaction of ours that may still be mined. */
  readonly isPending: boolean;
  /** At this block, each other transaction of ours with the job is mined or never will be. */
  readonly provenBlock: number;
}

/** Ends an unused job that no third party can hold. Mined without it: looked up at a block that has what was mined. */
export function judgeRefused({ intent, nonces }: Job, { isPending, provenBlock }: Shown): Verdict {
  if (intent.broadcast || isPending) return { kind: 'sendAlone' };
  if (nonces.size === 0) return { kind: 'end', outcome: { kind: 'failed', reason: REVERTED } };
  return { kind: 'lookUp', atBlock: provenBlock };
}

/**
 * Whether a payer made its lone transaction move nothing. `ban`: it has code. `no`: a plain account held less than the
 * price at that block, or is unread. `ask`: it held the price; banned if the token works.
 */
export function judgePayer(job: Job, seen: { hasCode: boolean } | { balance: bigint | null }): 'ban' | 'no' | 'ask' {
  if ('hasCode' in seen) return job.hasCode || seen.hasCode ? 'ban' : 'ask';
  return seen.balance !== null && seen.balance >= job.intent.authorization.value ? 'ask' : 'no';
}

/** Whether its payer may have failed a batch: the job was in a failed one and the payer has code. */
export function isGriefer({ wasInFailedBatch, hasCode }: Job): boolean {
  return wasInFailedBatch && hasCode;
}

/** Milliseconds until another try, where a failure may pass. */
export const RETRY_MS = 500;

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

/** Carries out rulings in order; lone jobs are queued together, as are waiting ones. Returns jobs to read again. */
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

export function holdUnresolved(turn: Turn, jobs: readonly Job[]): void {
  apply(
    turn,
    jobs.map((job) => judgeUnresolved(job, turn.now.nowMs)),
  );
}

export function endRound({ state }: Turn): void {
  state.sender = 'idle';
  state.round = null;
}

/** Lookups at once: as many as a public node accepts. */
const AT_ONCE = 8;

export function startSorting({ effects }: Turn, jobs: readonly Job[], after: After): void {
  const sorting: Sorting = { after, unused: [], toLookUp: [], next: 0, asked: 0 };
  effects.push({ kind: 'readPayers', jobs: jobs.filter((job) => !job.ended), for: sorting });
}

/** True once the sorting is done. */
export function sortByReadings(
  turn: Turn,
  sorting: Sorting,
  jobs: readonly Job[],
  readings: readonly (Reading | null)[],
): boolean {
  sorting.unused = jobs.filter((_, index) => readings[index]?.used === false);
  for (const job of sorting.unused) job.unresolvedMs = null;
  sorting.toLookUp = jobs.filter((_, index) => readings[index]?.used !== false);
  return !lookUpMore(turn, sorting);
}

export function sortByLogs(turn: Turn, sorting: Sorting, job: Job, found: Found): boolean {
  if (found.kind === 'settled' || found.kind === 'failed') finish(turn, job, found);
  sorting.asked--;
  return sorting.asked === 0 && !lookUpMore(turn, sorting);
}

function lookUpMore({ effects }: Turn, sorting: Sorting): boolean {
  const some = sorting.toLookUp.slice(sorting.next, sorting.next + AT_ONCE);
  sorting.next += some.length;
  sorting.asked = some.length;
  for (const job of some) effects.push({ kind: 'lookUp', job, atBlock: null, for: sorting });
  return some.length > 0;
}

/** Looks up expired jobs, which are no longer sent. The logs end them once the chain's own time is past the expiry. */
export function startExpiry(turn: Turn, jobs: readonly Job[]): void {
  lookUpMore(turn, { after: 'expire', unused: [], toLookUp: jobs, next: 0, asked: 0 });
}

/** Queues unused jobs again. The others wait until the chain shows their end. */
export function reopen(turn: Turn, { unused, toLookUp }: Sorting): void {
  requeue(turn, unused);
  holdUnresolved(turn, toLookUp);
}

/** Ends a job by the logs, or sends it again. Where they do not show its authorization, its payer becomes a suspect. */
export function endMinedAlone(turn: Turn, job: Job, found: Found, block: number): void {
  apply(turn, [judgeLookUp(job, found, { nowMs: turn.now.nowMs, isPending: isPending(turn, job) })]);
  if (found.kind === 'open') turn.effects.push({ kind: 'readPayers', jobs: [job], for: { minedAt: block } });
}

/** Checks a suspect, in turn: code, the balance at that block (the money may have come back since), the token. */
export function suspectByCode(turn: Turn, job: Job, reading: Reading | null, block: number): void {
  const judged = judgePayer(job, { hasCode: reading?.hasCode ?? false });
  if (judged === 'ban') banPayer(turn, job);
  if (judged === 'ask') turn.effects.push({ kind: 'readBalance', job, atBlock: block });
}

export function suspectByBalance({ effects }: Turn, job: Job, balance: bigint | null): void {
  if (judgePayer(job, { balance }) === 'ask') effects.push({ kind: 'tryToken', suspect: job });
}
