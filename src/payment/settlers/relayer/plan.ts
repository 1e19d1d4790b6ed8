import type { RpcOutcome } from '../../../chain/rpc/client.ts';
import type { ChainCheck } from '../../evm/chain-check.ts';
import { isRevert } from '../../evm/is-revert.ts';
import { cutGroups, halve } from './grouping.ts';
import type { Job } from './job.ts';
import { batchOutcomes } from './multicall.ts';

/** After so many readings in vain, a job whose payer alone cannot be read goes alone: a mined transaction will tell. */
const UNREAD_LIMIT = 3;

/** What a reading of a payer says, as far as a settlement needs it. */
export type Reading = Pick<Awaited<ReturnType<ChainCheck['read']>>, 'used' | 'hasCode'>;

/** The most gas that a transaction could be given, and how many payments one takes of so many that wait. */
export interface Room {
  readonly gas: bigint;
  /** What a transaction pays for each gas, in wei: a contract that is simulated at another price knows that it is simulated. */
  readonly gasPrice: bigint;
  /** Whether a lone payment is simulated too, though that takes time: failures have cost enough today. */
  readonly isCareful: boolean;
  most(waiting: number): number;
}

/** What is to be tried out before a round sends. */
export interface Plan {
  readonly room: Pick<Room, 'gas' | 'gasPrice'>;
  /** Those whose payers are read, and the same in the groups that are simulated. */
  readonly free: readonly Job[];
  readonly guesses: readonly Job[][];
  /** What goes as it is, each alone. */
  readonly alone: readonly Job[];
  /** What is not sent: the chain does not tell of these. */
  readonly unresolved: readonly Job[];
}

/** What the chain answered to a plan. A payer that could not be read has no reading; a node may simulate nothing. */
export interface Trial {
  readonly readings: ReadonlyMap<Job, Reading>;
  readonly simulated: readonly RpcOutcome[];
}

/** What may be sent now, each group in one transaction, and what must be looked at or tried again first. */
export interface Prepared {
  readonly groups: readonly Job[][];
  /** The chain has used these, or would not run them, or does not tell of them. */
  readonly doubtful: readonly Job[];
  /** Nothing was learned of these: to be tried again, those whose batch failed as a whole in smaller ones. */
  readonly again: readonly Job[];
}

/**
 * What must be known before these jobs are sent, because a payer may have moved its money or grown code since its call was verified:
 * 1. a plain account's lone payment is sent as it is, since looking would cost more than it saves, unless it may have failed a batch or failures
 *    have cost enough today;
 * 2. payers are read while their groups are simulated, so that both together cost one round trip.
 */
export function planRound(jobs: readonly Job[], room: Room): Plan {
  const unresolved = jobs.filter(({ unresolvedMs }) => unresolvedMs !== null);
  const known = jobs.filter(({ unresolvedMs }) => unresolvedMs === null);
  const [only] = known;
  const isPlain = only && !only.wasInFailedBatch && !only.hasCode && !room.isCareful;
  if (only && known.length === 1 && isPlain) return { room, free: [], guesses: [], alone: known, unresolved };
  const alone = known.filter(({ mustSend }) => mustSend);
  const free = known.filter(({ mustSend }) => !mustSend);
  return { room, free, guesses: cutGroups(free, room.most(free.length)), alone, unresolved };
}

/** Notes in the jobs what was learned of their payers. One that grew code goes alone from now on. */
export function learnPayers(jobs: readonly Job[], readings: Trial['readings']): void {
  for (const job of jobs) {
    const reading = readings.get(job);
    job.unread = reading ? 0 : job.unread + 1;
    if (reading?.hasCode) job.hasCode = true;
    if (job.hasCode) job.maxGroup = 1;
  }
}

/**
 * What a trial says of a plan's groups:
 * 1. what is used, or would not go through, is set aside;
 * 2. what would go through with code at its payer's address goes alone, the rest of its group together.
 */
export function judgeTrial({ guesses, alone, unresolved }: Plan, { readings, simulated }: Trial): Prepared {
  const groups: Job[][] = [];
  const doubtful: Job[] = [];
  const again: Job[] = [];
  for (const [index, group] of guesses.entries()) {
    const through = throughOf(simulated[index], group.length);
    const together: Job[] = [];
    const unclear: Job[] = [];
    // A payer with code may use up the others' gas in a simulation: payments that it refused are tried again without that payer.
    const isDisturbed = group.length > 1 && group.some((job) => readings.get(job)?.hasCode);
    for (const [at, job] of group.entries()) {
      const reading = readings.get(job);
      if (!reading && job.unread >= UNREAD_LIMIT) groups.push([job]);
      else if (!reading) again.push(job);
      else if (reading.used) doubtful.push(job);
      else if (through?.[at] === false) (isDisturbed ? again : doubtful).push(job);
      else if (through === null) unclear.push(job);
      else if (reading.hasCode) groups.push([job]);
      else together.push(job);
    }
    // Where no payer has code, something else disturbed the simulation: less of it next time.
    if (!unclear.some(({ hasCode }) => hasCode)) halve(unclear);
    again.push(...unclear);
    if (together.length > 0) groups.push(together);
  }
  return { groups: [...groups, ...alone.map((job) => [job])], doubtful: [...doubtful, ...unresolved], again };
}

/** What a simulation says of a group: who got through, or null where it says nothing. */
function throughOf(outcome: RpcOutcome | undefined, count: number): readonly boolean[] | null {
  if (!outcome) return null;
  if ('error' in outcome) return count === 1 && isRevert(outcome.error) ? [false] : null;
  // A transfer returns nothing; that it did not fail is all there is to know.
  if (count === 1) return [true];
  try {
    return batchOutcomes(outcome.result as `0x${string}`, count);
  } catch {
    return null;
  }
}
