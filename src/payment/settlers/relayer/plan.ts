import type { RpcOutcome } from '../../../chain/rpc/wire.ts';
import type { ChainCheck } from '../../usdc/checks.ts';
import { isRevert } from '../../usdc/payer-reads.ts';
import { cutGroups, splitGroup } from './grouping.ts';
import type { Job } from './job.ts';
import { batchOutcomes } from './multicall.ts';

/** After this many failed reads of its payer, a job is sent alone when only its payer cannot be read. A mined transaction then shows the result. */
const UNREAD_LIMIT = 3;

/** What a settlement needs of a read of a payer. */
export type Reading = Pick<Awaited<ReturnType<ChainCheck['read']>>, 'used' | 'hasCode'>;

/** The limits of a round's transactions. */
export interface RoundLimits {
  readonly gas: bigint;
  /** What a transaction pays per unit of gas, in wei. A simulation uses the same price, because a contract could otherwise detect the simulation. */
  readonly gasPrice: bigint;
  /** Whether a lone payment is simulated too, although that takes time. True once failures have used up today's budget. */
  readonly isCareful: boolean;
  /** The most transfers of one transaction while `waiting` transfers wait, and how many of them a payment with its own call counts for. */
  most(waiting: number): number;
  readonly callWeight: number;
}

/** What is read and simulated before a round sends. */
export interface Plan {
  readonly limits: Pick<RoundLimits, 'gas' | 'gasPrice'>;
  /** The jobs whose payers are read, and the same jobs in the groups that are simulated. */
  readonly free: readonly Job[];
  readonly trialGroups: readonly Job[][];
  /** Jobs that are sent without a read or a simulation, each alone. */
  readonly alone: readonly Job[];
  /** Jobs that are not sent, because the chain cannot show their state. */
  readonly unresolved: readonly Job[];
}

/**
 * The chain's answers to a plan. A payer whose read failed has no reading, nor has one whose payment one provider alone
 * refuses. A node may refuse to simulate.
 */
export interface Trial {
  readonly readings: ReadonlyMap<Job, Reading>;
  readonly simulated: readonly RpcOutcome[];
}

/** What may be sent now, with one transaction per group, and what must be looked up or tried again first. */
export interface Prepared {
  readonly groups: readonly Job[][];
  /** Jobs that the chain shows as used, would not execute, or cannot show. */
  readonly doubtful: readonly Job[];
  /** Jobs without a result. They are tried again, and in smaller groups if their batch failed as a whole. */
  readonly again: readonly Job[];
}

/**
 * Decides what must be read and simulated before these jobs are sent. A payer may have moved its money or become an account with code since its call
 * was verified:
 * 1. A plain account's lone payment is sent without a check, which would cost more than it saves. Exceptions: it may have failed a batch, or failures
 *    have used up today's budget.
 * 2. Payers are read while their groups are simulated, so that both together take one round trip.
 */
export function planRound(jobs: readonly Job[], limits: RoundLimits): Plan {
  const unresolved = jobs.filter(({ unresolvedMs }) => unresolvedMs !== null);
  const known = jobs.filter(({ unresolvedMs }) => unresolvedMs === null);
  const [only] = known;
  const isPlain = only && !only.wasInFailedBatch && !only.hasCode && !limits.isCareful;
  if (only && known.length === 1 && isPlain) return { limits, free: [], trialGroups: [], alone: known, unresolved };
  const alone = known.filter(({ mustSend }) => mustSend);
  const free = known.filter(({ mustSend }) => !mustSend);
  const weigh = ({ intent }: Job): number => (intent.call ? limits.callWeight : 1);
  const waiting = free.reduce((sum, job) => sum + weigh(job), 0);
  return { limits, free, trialGroups: cutGroups(free, limits.most(waiting), weigh), alone, unresolved };
}

/** Notes in the jobs what the reads of their payers showed. A job whose payer has code goes alone from now on. */
export function learnPayers(jobs: readonly Job[], readings: Trial['readings']): void {
  for (const job of jobs) {
    const reading = readings.get(job);
    job.unread = reading ? 0 : job.unread + 1;
    if (reading?.hasCode) job.hasCode = true;
    if (job.hasCode) job.maxGroup = 1;
  }
}

/**
 * Sorts a plan's jobs by the result of its trial:
 * 1. A used job, or one whose simulation failed, is set aside.
 * 2. A job that would succeed and whose payer has code goes alone. The rest of its group stays together.
 */
export function judgeTrial({ trialGroups, alone, unresolved }: Plan, { readings, simulated }: Trial): Prepared {
  const groups: Job[][] = [];
  const doubtful: Job[] = [];
  const again: Job[] = [];
  for (const [index, group] of trialGroups.entries()) {
    const through = throughOf(simulated[index], group.length);
    const together: Job[] = [];
    const unclear: Job[] = [];
    // A payer with code may use up the others' gas in a simulation. So payments that failed there are tried again without that payer.
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
    // When no payer has code, something else disturbed the simulation. So the next groups are smaller.
    if (!unclear.some(({ hasCode }) => hasCode)) splitGroup(unclear);
    again.push(...unclear);
    if (together.length > 0) groups.push(together);
  }
  return { groups: [...groups, ...alone.map((job) => [job])], doubtful: [...doubtful, ...unresolved], again };
}

/** Reads what a simulation shows for each job of a group: whether it would succeed. Null when it shows nothing. */
export function throughOf(outcome: RpcOutcome | undefined, count: number): readonly boolean[] | null {
  if (!outcome) return null;
  if ('error' in outcome) return count === 1 && isRevert(outcome.error) ? [false] : null;
  // A transfer returns no value. That it did not revert is the result.
  if (count === 1) return [true];
  try {
    return batchOutcomes(outcome.result as `0x${string}`, count);
  } catch {
    return null;
  }
}
