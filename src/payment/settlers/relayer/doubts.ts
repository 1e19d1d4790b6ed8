import type { Verdict as Found } from '../../settler.ts';
import type { Turn } from './events.ts';
import type { Job } from './job.ts';
import { judgeLookUp, judgePayer } from './judge.ts';
import type { Reading } from './plan.ts';
import type { After, Sorting } from './state.ts';
import { apply, banPayer, finish, holdUnresolved, isPending, requeue } from './turn.ts';

/** Looks at the chain for many jobs: as many at once as a public node bears. */
const AT_ONCE = 8;

/** Reads the payers of jobs to learn which authorizations are used. */
export function startSorting({ effects }: Turn, jobs: readonly Job[], after: After): void {
  const sorting: Sorting = { after, unused: [], toLookUp: [], next: 0, asked: 0 };
  effects.push({ kind: 'readPayers', jobs: jobs.filter((job) => !job.ended), for: sorting });
}

/** Takes the readings in; returns whether the sorting is done. */
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

/** Takes one lookup in; returns whether the sorting is done. */
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

/** Jobs whose authorizations have run out are not sent any more. The logs end them as soon as the chain's own time says so. */
export function startExpiry(turn: Turn, jobs: readonly Job[]): void {
  if (jobs.length > 0) lookUpMore(turn, { after: 'expire', unused: [], toLookUp: jobs, next: 0, asked: 0 });
}

/** Back to the queue with what is unused; the rest waits for the chain to tell. */
export function reopen(turn: Turn, { unused, toLookUp }: Sorting): void {
  requeue(turn, unused);
  holdUnresolved(turn, toLookUp);
}

/** A job that was mined alone and is not paid ends by the logs, or is sent again; where these hold nothing of it, its payer is suspected. */
export function endMinedAlone(turn: Turn, job: Job, found: Found, block: number): void {
  apply(turn, [judgeLookUp(job, found, { nowMs: turn.now.nowMs, isPending: isPending(turn, job) })]);
  if (found.kind === 'open') turn.effects.push({ kind: 'readPayers', jobs: [job], for: { minedAt: block } });
}

/**
 * Goes on with a suspicion, by one answer after the other: has the payer code, did it hold the price at the transaction's block (the money may
 * have come back since), does the token work.
 */
export function suspectByCode(turn: Turn, job: Job, reading: Reading | null, block: number): void {
  const judged = judgePayer(job, { hasCode: reading?.hasCode ?? false });
  if (judged === 'ban') banPayer(turn, job);
  if (judged === 'ask') turn.effects.push({ kind: 'readBalance', job, atBlock: block });
}

export function suspectByBalance({ effects }: Turn, job: Job, balance: bigint | null): void {
  if (judgePayer(job, { balance }) === 'ask') effects.push({ kind: 'tryToken', suspect: job });
}
