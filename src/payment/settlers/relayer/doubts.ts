import type { Found } from '../../settler.ts';
import type { Turn } from './events.ts';
import type { Job } from './job.ts';
import { judgeLookUp, judgePayer } from './judge.ts';
import type { Reading } from './plan.ts';
import type { After, Sorting } from './state.ts';
import { apply, banPayer, finish, holdUnresolved, isPending, requeue } from './verdicts.ts';

/** Lookups that run at once: as many as a public node accepts. */
const AT_ONCE = 8;

/** Reads the payers of jobs to learn which authorizations are used. */
export function startSorting({ effects }: Turn, jobs: readonly Job[], after: After): void {
  const sorting: Sorting = { after, unused: [], toLookUp: [], next: 0, asked: 0 };
  effects.push({ kind: 'readPayers', jobs: jobs.filter((job) => !job.ended), for: sorting });
}

/** Takes the readings. Returns whether the sorting is done. */
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

/** Takes one lookup. Returns whether the sorting is done. */
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

/** Looks up jobs whose authorizations have expired and are no longer sent. The logs end them once the chain's own time is past the expiry. */
export function startExpiry(turn: Turn, jobs: readonly Job[]): void {
  lookUpMore(turn, { after: 'expire', unused: [], toLookUp: jobs, next: 0, asked: 0 });
}

/** Queues the unused jobs again. Holds the others until the chain shows their end. */
export function reopen(turn: Turn, { unused, toLookUp }: Sorting): void {
  requeue(turn, unused);
  holdUnresolved(turn, toLookUp);
}

/**
 * Ends a job by the logs after it was mined alone without its transfer, or sends it again. Its payer becomes a suspect when the logs do not show the
 * authorization.
 */
export function endMinedAlone(turn: Turn, job: Job, found: Found, block: number): void {
  apply(turn, [judgeLookUp(job, found, { nowMs: turn.now.nowMs, isPending: isPending(turn, job) })]);
  if (found.kind === 'open') turn.effects.push({ kind: 'readPayers', jobs: [job], for: { minedAt: block } });
}

/**
 * Continues the check of a suspected payer, one answer at a time: does the payer have code, did it hold the price at the transaction's block (the
 * money may have come back since), does the token work.
 */
export function suspectByCode(turn: Turn, job: Job, reading: Reading | null, block: number): void {
  const judged = judgePayer(job, { hasCode: reading?.hasCode ?? false });
  if (judged === 'ban') banPayer(turn, job);
  if (judged === 'ask') turn.effects.push({ kind: 'readBalance', job, atBlock: block });
}

export function suspectByBalance({ effects }: Turn, job: Job, balance: bigint | null): void {
  if (judgePayer(job, { balance }) === 'ask') effects.push({ kind: 'tryToken', suspect: job });
}
