import type { RpcCall } from '../../../chain/rpc/call.ts';
import type { ChainClient, RpcOutcome } from '../../../chain/rpc/client.ts';
import { toQuantity } from '../../../chain/rpc/wire.ts';
import type { ChainCheck } from '../../evm/chain-check.ts';
import { isRevert } from '../../evm/is-revert.ts';
import { SETTLE_GAS, transferCalldata } from '../../evm/token.ts';
import type { Look } from '../../rail.ts';
import { cutGroups, halve } from './grouping.ts';
import type { Job } from './job.ts';
import { batchCalldata, batchOutcomes, MULTICALL3 } from './multicall.ts';

/** After so many readings in vain, one whose payer alone cannot be read goes alone: a mined transaction will tell. */
const UNREAD_LIMIT = 3;

interface PrepareOptions {
  chain: ChainClient;
  check: Pick<ChainCheck, 'read'>;
  usdc: `0x${string}`;
  relayer: `0x${string}`;
  signal: AbortSignal;
}

/** What may be sent now, each group in one transaction, and what must be looked at or tried again first. */
export interface Prepared {
  readonly groups: readonly Job[][];
  /** The chain has used these, or would not run them. */
  readonly doubtful: readonly Job[];
  /** Nothing was learned of them: to be tried again, those whose batch failed as a whole in smaller ones. */
  readonly again: readonly Job[];
}

/** The most gas that a transaction could be given, and how many payments one takes of so many that wait. */
export interface Room {
  readonly gas: bigint;
  /** What a transaction pays for each gas, in wei: a contract that is tried out at another price knows that it is tried out. */
  readonly gasPrice: bigint;
  /** Whether one alone is looked at too, though that takes time: failures have cost enough today. */
  readonly isCareful: boolean;
  most(waiting: number): number;
}

/** What a simulation says of a group: who got through, or null where it says nothing. */
type Through = readonly boolean[] | null;

/**
 * Looks at the chain just before sending, because a payer may have moved its money or grown code since its call was verified:
 * 1. a plain account's alone is sent as it is, since looking would cost more than it saves, unless it may have spoilt a batch or failures have
 *    cost enough today;
 * 2. payers are read while their groups are simulated, so that both together cost one round trip;
 * 3. what is used, or would not go through, is set aside;
 * 4. what would go through with code at its payer's address goes alone, the rest of its group together.
 */
export function createPrepare({ chain, check, usdc, relayer, signal }: PrepareOptions) {
  /** A batch is simulated with more gas than it will be given: what it then runs out of, somebody burns. */
  function simulation(group: readonly Job[], { gas, gasPrice }: Pick<Room, 'gas' | 'gasPrice'>): RpcCall {
    const authorizations = group.map(({ intent }) => intent.authorization);
    const [only] = authorizations;
    const call =
      only && group.length === 1
        ? { to: usdc, data: transferCalldata(only), gas: toQuantity(SETTLE_GAS), gasPrice: toQuantity(gasPrice) }
        : { to: MULTICALL3, data: batchCalldata(usdc, authorizations), gas: toQuantity(gas) };
    return { method: 'eth_call', params: [{ from: relayer, ...call }, 'latest'] };
  }

  /** Reads every payer; notes what is learned. Throws when none could be read, because then it is the chain that does not answer. */
  async function readPayers(jobs: readonly Job[]): Promise<Map<Job, Look>> {
    const outcomes = await Promise.allSettled(jobs.map(({ intent }) => check.read(intent.authorization, signal)));
    const readings = new Map<Job, Look>();
    for (const [at, job] of jobs.entries()) {
      const outcome = outcomes[at];
      if (outcome?.status === 'fulfilled') readings.set(job, outcome.value);
    }
    const [first] = outcomes;
    if (readings.size === 0 && first?.status === 'rejected') throw first.reason;
    for (const job of jobs) {
      const reading = readings.get(job);
      job.unread = reading ? 0 : job.unread + 1;
      if (reading?.hasCode) job.hasCode = true;
      if (job.hasCode) job.maxGroup = 1;
    }
    return readings;
  }

  return async (jobs: readonly Job[], room: Room): Promise<Prepared> => {
    const untold = jobs.filter(({ untoldMs }) => untoldMs !== null);
    const told = jobs.filter(({ untoldMs }) => untoldMs === null);
    const [only] = told;
    const isPlain = only && !only.spoilt && !only.hasCode && !room.isCareful;
    if (only && told.length === 1 && (only.mustSend || isPlain))
      return { groups: [[only]], doubtful: untold, again: [] };
    const forced = told.filter(({ mustSend }) => mustSend);
    const free = told.filter(({ mustSend }) => !mustSend);
    const guesses = cutGroups(free, room.most(free.length));
    const calls = guesses.map((group) => simulation(group, room));
    // A node that reads but does not simulate so much says nothing of it.
    const silent = (): RpcOutcome[] => [];
    const [readings, simulated] = await Promise.all([readPayers(free), chain.batch(calls, { signal }).catch(silent)]);
    const sorted = sortGroups(guesses, simulated, readings);
    const alone = forced.map((job) => [job]);
    return { ...sorted, groups: [...sorted.groups, ...alone], doubtful: [...sorted.doubtful, ...untold] };
  };
}

function sortGroups(
  guesses: readonly Job[][],
  simulated: readonly RpcOutcome[],
  readings: ReadonlyMap<Job, Look>,
): Prepared {
  const groups: Job[][] = [];
  const doubtful: Job[] = [];
  const again: Job[] = [];
  for (const [index, group] of guesses.entries()) {
    const through = throughOf(simulated[index], group.length);
    const together: Job[] = [];
    const unclear: Job[] = [];
    // A payer with code may use up the others' gas in a simulation: payments that it refused are tried again without that payer.
    const isSpoilt = group.length > 1 && group.some((job) => readings.get(job)?.hasCode);
    for (const [at, job] of group.entries()) {
      const reading = readings.get(job);
      if (!reading && job.unread >= UNREAD_LIMIT) groups.push([job]);
      else if (!reading) again.push(job);
      else if (reading.used) doubtful.push(job);
      else if (through?.[at] === false) (isSpoilt ? again : doubtful).push(job);
      else if (through === null) unclear.push(job);
      else if (reading.hasCode) groups.push([job]);
      else together.push(job);
    }
    // Where nobody has code, something else spoilt the simulation: less of it next time.
    if (!unclear.some(({ hasCode }) => hasCode)) halve(unclear);
    again.push(...unclear);
    if (together.length > 0) groups.push(together);
  }
  return { groups, doubtful, again };
}

function throughOf(outcome: RpcOutcome | undefined, count: number): Through {
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
